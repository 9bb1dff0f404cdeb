// One provider: its models and health; tests; the key and the end of a stored one.
import { useState } from "preact/hooks";

import { useActions } from "../../parts/actions";
import { ConfirmButton } from "../../parts/confirm";
import { Failure } from "../../parts/failure";
import { when } from "../../parts/formats";
import { Status } from "../../parts/status";
import { providersWords } from "../../words/providers";
import type { Provider } from "../../admin/calls";
import { HealthTable } from "./health_table";
import { type ProviderTest, type StoredProvider, removeProvider, storeProvider, testProvider } from "./stored";
import { TestResult } from "./test_result";

const text = providersWords;
const MARKS = { healthy: "●", degraded: "◐", down: "○" } as const;
// Of the gateway itself: there is nothing to test.
const OWN: readonly string[] = ["sandbox", "embedded"];

export function ProviderCard({
  name,
  provider,
  stored,
  onChanged,
}: {
  name: string;
  /** As it is in use, if it is. */
  provider: Provider | undefined;
  stored: StoredProvider | undefined;
  onChanged: () => void;
}) {
  const [test, setTest] = useState<ProviderTest>();
  const [isRotating, setRotating] = useState(false);
  const { error, run } = useActions();
  const isOwn = OWN.includes(provider?.kind ?? "");

  function rotate(event: SubmitEvent): void {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const key = String(new FormData(form).get("api_key") ?? "").trim();
    void run(async () => {
      const result = await testProvider(name, { api_key: key });
      setTest(result);
      // What the provider rejects would fail the next request.
      if (result.outcome === "key_rejected") return;
      await storeProvider(name, { api_key: key });
      setRotating(false);
      onChanged();
    });
  }

  return (
    <article aria-label={name}>
      <h3>
        {provider && (
          <span class={`status ${provider.status}`}>
            <span aria-hidden="true">{MARKS[provider.status]}</span> {text.states[provider.status]}
          </span>
        )}{" "}
        {name}{" "}
        {stored && stored.state !== "active" && (
          <Status tone="warning">{text.stored[stored.state]}</Status>
        )}
      </h3>
      <p class="hint">{stored ? described(stored) : isOwn ? text.builtIn : text.ruled}</p>
      {stored && stored.state !== "active" && <p class="hint">{text.storedHint[stored.state]}</p>}
      {!isOwn && (
        <div class="actions">
          {provider && (
            <button type="button" class="quiet" onClick={() => void run(async () => setTest(await testProvider(name)))}>
              {text.test.act}
              <span class="visually-hidden"> {name}</span>
            </button>
          )}
          {stored?.state === "active" && (
            <button
              type="button"
              class="quiet"
              aria-expanded={isRotating}
              onClick={() => setRotating((now) => !now)}
            >
              {stored.has_key ? text.rotate.act : text.rotate.set}
              <span class="visually-hidden"> {name}</span>
            </button>
          )}
          {stored && (
            <ConfirmButton
              label={text.remove}
              name={name}
              question={text.removeQuestion(name)}
              onConfirm={async () => {
                await removeProvider(name);
                onChanged();
              }}
            />
          )}
        </div>
      )}
      {isRotating && (
        <form class="actions" aria-label={text.rotate.of(name)} onSubmit={rotate}>
          <label>
            {text.rotate.key}
            <input name="api_key" type="password" required autocomplete="off" spellcheck={false} />
          </label>
          <button>{text.rotate.save}</button>
        </form>
      )}
      <TestResult test={test} />
      <Failure error={error} />
      {provider && <HealthTable provider={provider} />}
    </article>
  );
}

function described(stored: StoredProvider): string {
  const key = stored.has_key ? text.keySet(when(stored.key_set_at)) : text.noKey;
  return `${stored.base_url} · ${key}`;
}
