// API keys: list, create, revoke, limit.
import { useState } from "preact/hooks";

import { ConfirmButton } from "../../parts/confirm";
import { Failure } from "../../parts/failure";
import { when } from "../../parts/formats";
import { MoreButton } from "../../parts/more_button";
import { usePaged } from "../../parts/paged";
import { type Key, createKey, listKeys, revokeKey } from "./admin";
import { LimitsForm } from "./limits";

export function Keys() {
  const keys = usePaged(listKeys, []);
  const [shown, setShown] = useState("");
  return (
    <section aria-labelledby="keys">
      <h2 id="keys">Keys</h2>
      <CreateKey onCreated={keys.reload} />
      <Failure error={keys.error} />
      <ul class="cards" aria-label="Keys">
        {keys.items.map((key) => (
          <li key={key.id}>
            <article aria-label={key.name || key.prefix}>
              <h3>
                {key.name || <code>{key.prefix}…</code>}{" "}
                <span class={`status ${key.state === "active" ? "healthy" : "down"}`}>
                  {key.state}
                </span>
              </h3>
              <p class="hint">
                <code>{key.prefix}…</code> · user {key.user}
                {key.team !== null && ` · team ${key.team}`} · {key.plan} · since{" "}
                {when(key.created_at)}
              </p>
              <div class="actions">
                <button
                  type="button"
                  class="quiet"
                  aria-expanded={shown === key.id}
                  onClick={() => setShown((id) => (id === key.id ? "" : key.id))}
                >
                  Limits
                  <span class="visually-hidden"> of {key.name || key.prefix}</span>
                </button>
                {key.state !== "revoked" && (
                  <ConfirmButton
                    label="Revoke"
                    name={key.name || key.prefix}
                    question={`Revoke the key ${key.name || key.prefix} of ${key.user} for good?`}
                    onConfirm={async () => {
                      await revokeKey(key.id);
                      keys.reload();
                    }}
                  />
                )}
              </div>
              {shown === key.id && <LimitsForm path={`keys/${encodeURIComponent(key.id)}/limits`} />}
            </article>
          </li>
        ))}
      </ul>
      <MoreButton list={keys} label="More keys" />
    </section>
  );
}

function CreateKey({ onCreated }: { onCreated: () => void }) {
  const [created, setCreated] = useState<Key>();
  const [error, setError] = useState<unknown>();

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const text = (name: string): string => String(new FormData(form).get(name) ?? "").trim();
    setError(undefined);
    setCreated(undefined);
    try {
      const team = text("team");
      const fields = { user: text("user"), name: text("name"), ...(team ? { team } : {}) };
      setCreated(await createKey(fields));
      form.reset();
      onCreated();
    } catch (failure) {
      setError(failure);
    }
  }

  return (
    <>
      <form class="actions" aria-label="New key" onSubmit={submit}>
        <label>
          User
          <input name="user" required autocomplete="off" />
        </label>
        <label>
          Team (optional)
          <input name="team" autocomplete="off" />
        </label>
        <label>
          Name (optional)
          <input name="name" autocomplete="off" />
        </label>
        <button>Create key</button>
      </form>
      <Failure error={error} />
      <div role="status">
        {created?.key && (
          <p>
            The key of {created.user}, shown this once: <code>{created.key}</code>
          </p>
        )}
      </div>
    </>
  );
}
