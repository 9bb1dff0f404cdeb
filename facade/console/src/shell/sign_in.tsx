// The sign-in: the page of those who are not signed in, and the dialog over the page of somebody whose
// session has ended, which goes on afterwards.
import { useEffect, useRef, useState } from "preact/hooks";

import { ApiError, toError } from "../api/client";
import { Failure } from "../parts/failure";
import { words } from "../words/common";
import { shellWords } from "../words/shell";
import {
  hasEnded,
  issuerAddress,
  issuerName,
  session,
  signIn,
  signInProblem,
  signOut,
} from "./session";

const text = shellWords.signIn;

export function SignIn() {
  return (
    <main class="sign-in" id="main">
      <h1>{words.console}</h1>
      {signInProblem.value && <p role="status">{signInProblem.value}</p>}
      {issuerName.value && (
        <>
          <a class="button" href={issuerAddress(location.pathname + location.search)}>
            {text.at(issuerName.value)}
          </a>
          <p class="hint">{text.orKey}</p>
        </>
      )}
      <KeyForm />
      <p class="hint">
        <code>make run</code>
        {text.hint[0]}
        <code>gateway console</code>
        {text.hint[1]}
        <code>gateway keys create --user NAME</code>
        {text.hint[2]}
      </p>
    </main>
  );
}

/** Asks for another sign-in while the page below keeps all that was being written. */
export function SignInAgain() {
  if (!hasEnded.value) return null;
  return <OpenSignInAgain />;
}

function OpenSignInAgain() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      class="sign-in-again"
      aria-label={text.again}
      // Escape would leave a page that can do nothing.
      onCancel={(event) => event.preventDefault()}
    >
      <strong>{text.ended}</strong>
      <p>{text.goOn(session.value?.user ?? "")}</p>
      {issuerName.value && (
        <a class="button" href={issuerAddress("/console/signed-in")} target="_blank">
          {text.at(issuerName.value)}
        </a>
      )}
      <KeyForm />
      <button type="button" class="quiet" onClick={() => void signOut()}>
        {shellWords.signOut}
      </button>
    </dialog>
  );
}

/** The page that a tab shows which was opened to sign in again; it has told the others. */
export function SignedIn() {
  return (
    <main class="sign-in" id="main">
      <h1>{text.done}</h1>
      <p>{text.back}</p>
      <p>
        <a href="/console">{text.openHere}</a>
      </p>
    </main>
  );
}

function KeyForm() {
  const [key, setKey] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<ApiError>();

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    setBusy(true);
    setFailure(undefined);
    try {
      const response = await signIn({ key: key.trim() });
      if (!response.ok) {
        setFailure(toError(response.status, response.headers, await response.text()));
      }
    } catch {
      setFailure(new ApiError(words.noAnswer, 0));
    } finally {
      setBusy(false);
    }
  }

  return (
    <>
      <form onSubmit={submit}>
        <label>
          {text.key}
          <input
            type="password"
            autocomplete="off"
            spellcheck={false}
            required
            value={key}
            onInput={(event) => setKey(event.currentTarget.value)}
          />
        </label>
        <button disabled={isBusy}>{text.submit}</button>
      </form>
      <Failure error={failure} />
    </>
  );
}
