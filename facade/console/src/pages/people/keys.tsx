// API keys: created and copied once, rotated, disabled, given an end, revoked, limited.
import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";

import { ConfirmButton } from "../../parts/confirm";
import { Failure } from "../../parts/failure";
import { when } from "../../parts/formats";
import { type Paged, usePaged } from "../../parts/paged";
import { Status, type Tone } from "../../parts/status";
import { useActions } from "../../parts/actions";
import { administersAll } from "../../shell/session";
import { setupChanged } from "../../shell/setup";
import { peopleWords } from "../../words/people";
import { type Key, createKey, listKeys, revokeKey, rotateKey, updateKey } from "./accounts";
import { CardList, Toggle } from "./card_list";
import { LimitsForm } from "./limits";
import { ShownOnce } from "./shown_once";

const text = peopleWords.keys;
const TONES: Record<Key["state"], Tone> = { active: "good", disabled: "warning", expired: "bad", revoked: "quiet" };

export function Keys() {
  const { query, route } = useLocation();
  const user = query["user"] ?? "";
  const keys = usePaged((page, signal) => listKeys(user, page, signal), [user]);
  const [created, setCreated] = useState<Key>();
  return (
    <>
      <CreateKey
        user={user}
        onCreated={(key) => {
          setCreated(key);
          keys.reload();
          setupChanged();
        }}
      />
      <ShownOnce
        secret={created?.key || undefined}
        name={text.theKey}
        hint={text.shownOnce(created?.user ?? "")}
        onDone={() => setCreated(undefined)}
      />
      {user !== "" && (
        <p class="actions">
          {text.of(user)}
          <button type="button" class="quiet small" onClick={() => route("/console/people")}>
            {text.all}
          </button>
        </p>
      )}
      <CardList
        list={keys}
        title={text.title}
        more={text.more}
        none={text.none}
        noneHint={text.noneHint}
      >
        {(key) => <Card entry={key} keys={keys} onCreated={setCreated} />}
      </CardList>
    </>
  );
}

function Card({
  entry,
  keys,
  onCreated,
}: {
  entry: Key;
  keys: Paged<Key>;
  onCreated: (key: Key) => void;
}) {
  const [shown, setShown] = useState<"" | "limits" | "expiry">("");
  const { error, run } = useActions();
  const name = entry.name || `${entry.prefix}…`;
  const toggle = (one: "limits" | "expiry"): void => setShown((now) => (now === one ? "" : one));

  const change = (act: () => Promise<unknown>): Promise<void> =>
    run(async () => {
      await act();
      keys.reload();
    });

  return (
    <article aria-label={name}>
      <h3>
        {entry.name || <code>{entry.prefix}…</code>}{" "}
        <Status tone={TONES[entry.state]}>{text.states[entry.state]}</Status>
      </h3>
      <p class="hint">
        <code>{entry.prefix}…</code> · {text.owner(entry.user, entry.team)} · {text.since(when(entry.created_at))}
        {entry.expires_at !== null && ` · ${text.expires(when(entry.expires_at))}`}
      </p>
      <div class="actions">
        {administersAll.value && (
          <Toggle
            name={name}
            label={text.limits}
            isOpen={shown === "limits"}
            onClick={() => toggle("limits")}
          />
        )}
        {entry.state !== "revoked" && (
          <>
            <Toggle name={name} label={text.expiry} isOpen={shown === "expiry"} onClick={() => toggle("expiry")} />
            <button
              type="button"
              class="quiet"
              onClick={() => void change(() => updateKey(entry.id, { enabled: !entry.enabled }))}
            >
              {entry.enabled ? text.disable : text.enable}
              <span class="visually-hidden"> {name}</span>
            </button>
            <ConfirmButton
              label={text.rotate}
              name={name}
              question={text.rotateQuestion(name)}
              onConfirm={async () => {
                onCreated(await rotateKey(entry.id));
                keys.reload();
              }}
            />
            <ConfirmButton
              label={text.revoke}
              name={name}
              question={text.revokeQuestion(name, entry.user)}
              onConfirm={async () => {
                await revokeKey(entry.id);
                keys.reload();
              }}
            />
          </>
        )}
      </div>
      <Failure error={error} />
      {shown === "limits" && <LimitsForm path={`keys/${encodeURIComponent(entry.id)}/limits`} />}
      {shown === "expiry" && (
        <form
          class="actions"
          onSubmit={(event) => {
            event.preventDefault();
            const expiresAt = endOf(new FormData(event.currentTarget as HTMLFormElement));
            void change(() => updateKey(entry.id, { expires_at: expiresAt ?? null }));
          }}
        >
          <label>
            {text.expiresAt}
            <input type="datetime-local" name="expires_at" defaultValue={localTime(entry.expires_at)} />
          </label>
          <button>{text.save}</button>
          <span class="hint">{text.never}</span>
        </form>
      )}
    </article>
  );
}

function CreateKey({ user, onCreated }: { user: string; onCreated: (key: Key) => void }) {
  const { error, run } = useActions();

  function submit(event: SubmitEvent): void {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const data = new FormData(form);
    const field = (name: string): string => String(data.get(name) ?? "").trim();
    const [team, expiresAt] = [field("team"), endOf(data)];
    void run(async () => {
      const key = await createKey({
        user: field("user"),
        name: field("name"),
        ...(team === "" ? {} : { team }),
        ...(expiresAt === undefined ? {} : { expires_at: expiresAt }),
      });
      form.reset();
      onCreated(key);
    });
  }

  return (
    <>
      <form class="actions" aria-label={text.create} onSubmit={submit}>
        <label>
          {text.user}
          <input name="user" required autocomplete="off" defaultValue={user} />
        </label>
        {administersAll.value && (
          <label>
            {text.team}
            <input name="team" autocomplete="off" />
          </label>
        )}
        <label>
          {text.name}
          <input name="name" autocomplete="off" />
        </label>
        <label>
          {text.expiresAt}
          <input type="datetime-local" name="expires_at" />
        </label>
        <button>{text.create}</button>
      </form>
      <Failure error={error} />
    </>
  );
}

/** Return the entered end of a key in Unix seconds, or undefined for none. */
function endOf(form: FormData): number | undefined {
  const entered = String(form.get("expires_at") ?? "");
  return entered === "" ? undefined : Math.floor(Date.parse(entered) / 1000);
}

/** Return a time as an input of local time has it. */
function localTime(at: number | null): string {
  if (at === null) return "";
  const offsetMs = new Date(at * 1000).getTimezoneOffset() * 60_000;
  return new Date(at * 1000 - offsetMs).toISOString().slice(0, 16);
}
