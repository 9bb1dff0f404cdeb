// The page of an invitation: what it offers, and a button that accepts it. Opening it uses nothing up.
import { useEffect, useState } from "preact/hooks";

import { toError } from "../api/client";
import { useActions } from "../parts/actions";
import { CopyButton } from "../parts/copy";
import { Failure } from "../parts/failure";
import { when } from "../parts/formats";
import { useTitle } from "../parts/title";
import { words } from "../words/common";
import { invitationWords } from "../words/invitation";
import { peopleWords } from "../words/people";
import {
  type Role,
  acceptInvitation,
  closeInvitation,
  invitation,
  postJson,
  releaseInvitation,
  session,
} from "./session";

interface Offer {
  role: Role;
  user: string | null;
  team: string | null;
  invited_by: string | null;
  /** Unix seconds. */
  expires_at: number;
  oidc: { name: string } | null;
}

const text = invitationWords;
const PATH = "/console/invitation";

export function InvitationPage() {
  useTitle(text.title);
  const token = invitation.value;
  const [offer, setOffer] = useState<Offer>();
  const [key, setKey] = useState<string>();
  const { error, run } = useActions();
  useEffect(() => {
    setOffer(undefined);
    void run(async () => setOffer(await answered<Offer>(await postJson(PATH, { token }))));
  }, [token]);

  if (key !== undefined) return <Accepted ownKey={key} />;
  return (
    <main class="sign-in" id="main">
      <h1>{text.title}</h1>
      {offer && <Terms offer={offer} />}
      {offer && session.value && <p class="hint">{text.signedIn(session.value.user)}</p>}
      {offer?.oidc && (
        <button
          type="button"
          onClick={() =>
            void run(async () => {
              const begun = await postJson(`${PATH}/issuer`, { token });
              const { location: address } = await answered<{ location: string }>(begun);
              releaseInvitation();
              location.assign(address);
            })
          }
        >
          {text.acceptAt(offer.oidc.name)}
        </button>
      )}
      {offer && !offer.oidc && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            const data = new FormData(event.currentTarget as HTMLFormElement);
            const user = String(data.get("user") ?? "").trim();
            void run(async () => {
              const response = await acceptInvitation(user);
              setKey((await answered<{ key: string }>(response)).key);
            });
          }}
        >
          {offer.user === null && (
            <label>
              {text.name}
              <input name="user" required autocomplete="username" maxLength={64} spellcheck={false} />
            </label>
          )}
          <button>{text.accept}</button>
        </form>
      )}
      <Failure error={error} />
      <p>
        <button type="button" class="quiet" onClick={closeInvitation}>
          {error === undefined ? text.notNow : text.leave}
        </button>
      </p>
    </main>
  );
}

function Terms({ offer }: { offer: Offer }) {
  return (
    <>
      <p>{text.offer(offer.invited_by, words.roles[offer.role], offer.team)}</p>
      <p class="hint">
        {words.roleHints[offer.role]} {text.until(when(offer.expires_at))}
      </p>
      {offer.user !== null && <p>{text.for(offer.user)}</p>}
    </>
  );
}

/** The key of the new user, which is shown this once. */
function Accepted({ ownKey }: { ownKey: string }) {
  return (
    <main class="sign-in" id="main">
      <h1>{text.welcome(session.value?.user ?? "")}</h1>
      <div class="secret" role="status">
        <p>
          <strong>{text.keyOnce}</strong>
        </p>
        <p class="actions">
          <code>{ownKey}</code>
          <CopyButton text={ownKey} label={words.copy} name={peopleWords.keys.theKey} />
        </p>
      </div>
      <button type="button" onClick={closeInvitation}>
        {text.go}
      </button>
    </main>
  );
}

async function answered<T>(response: Response): Promise<T> {
  if (!response.ok) throw toError(response.status, response.headers, await response.text());
  return (await response.json()) as T;
}
