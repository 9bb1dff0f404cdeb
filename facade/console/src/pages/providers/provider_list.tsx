// How providers are doing, read anew every few seconds; stored ones are added, changed and removed.
import { useEffect } from "preact/hooks";

import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { useLoaded } from "../../parts/loading";
import { setupChanged } from "../../shell/setup";
import { providersWords } from "../../words/providers";
import { type Provider, getProviders } from "../../admin/calls";
import { AddProvider } from "./add_provider";
import { ProviderCard } from "./provider_card";
import { type StoredProvider, listStored } from "./stored";

const EVERY_MS = 5000;
const text = providersWords;

export function ProviderList() {
  const health = useLoaded(getProviders, []);
  const stored = useLoaded(listStored, []);
  function reload(): void {
    health.reload();
    stored.reload();
    setupChanged();
  }
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) health.reload();
    }, EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  const shown = combined(health.data?.data ?? [], stored.data?.data ?? []);
  return (
    <>
      {stored.data && (
        <AddProvider
          presets={stored.data.presets}
          canStore={stored.data.can_store}
          taken={shown.map(({ id }) => id)}
          onAdded={reload}
        />
      )}
      <section aria-labelledby="providers">
        <h2 id="providers">{text.health}</h2>
        <Failure error={health.error ?? stored.error} />
        {health.data !== undefined && shown.length === 0 && (
          <Empty title={text.none}>
            <p>{text.noneHint}</p>
          </Empty>
        )}
        {health.data !== undefined && shown.length > 0 && (
          <>
            <p class="hint">{text.window(health.data.window_seconds, health.data.workers)}</p>
            <ul class="cards" aria-label={text.list}>
              {shown.map(({ id, provider, entry }) => (
                <li key={id}>
                  <ProviderCard name={id} provider={provider} stored={entry} onChanged={reload} />
                </li>
              ))}
            </ul>
          </>
        )}
      </section>
    </>
  );
}

interface Shown {
  id: string;
  provider: Provider | undefined;
  entry: StoredProvider | undefined;
}

/** Return all providers by name: those in use, and the stored ones that are not. */
function combined(providers: readonly Provider[], stored: readonly StoredProvider[]): Shown[] {
  const entries = new Map(stored.map((entry) => [entry.id, entry]));
  const inUse = new Map(providers.map((provider) => [provider.id, provider]));
  return [...new Set([...inUse.keys(), ...entries.keys()])]
    .sort()
    .map((id) => ({ id, provider: inUse.get(id), entry: entries.get(id) }));
}
