// How providers and their models are doing, read anew every few seconds.
import { useEffect } from "preact/hooks";

import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { when } from "../../parts/formats";
import { useLoaded } from "../../parts/loading";
import { duration } from "../../parts/units";
import { type Provider, type ProviderModel, getProviders } from "./admin";

const EVERY_MS = 5000;
const MARKS = { healthy: "●", degraded: "◐", down: "○" } as const;

export function ProviderHealth() {
  const { data, error, reload } = useLoaded(getProviders, []);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) reload();
    }, EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <section aria-labelledby="providers">
      <h2 id="providers">Health</h2>
      <Failure error={error} />
      {data?.data.length === 0 && (
        <Empty title="There are no providers yet">
          <p>
            Name one in the settings: <code>gateway config example</code> prints how.
          </p>
        </Empty>
      )}
      {data !== undefined && data.data.length > 0 && (
        <>
          <p class="hint">
            Attempts of the last {Math.round(data.window_seconds / 60)} minutes, over{" "}
            {data.workers === 1 ? "one worker" : `${data.workers} workers`}.
          </p>
          <ul class="cards" aria-label="Providers">
            {data.data.map((provider) => (
              <li key={provider.id}>
                <ProviderCard provider={provider} />
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function ProviderCard({ provider }: { provider: Provider }) {
  return (
    <article aria-label={provider.id}>
      <h3>
        <span class={`status ${provider.status}`}>
          <span aria-hidden="true">{MARKS[provider.status]}</span> {provider.status}
        </span>{" "}
        {provider.id}
      </h3>
      {provider.models.length === 0 ? (
        <p class="hint">Of kind {provider.kind}; none of its models was called in that time.</p>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label={`Models of ${provider.id}`}>
          <table>
            <thead>
              <tr>
                <th>Model</th>
                <th>Breaker</th>
                <th>Attempts</th>
                <th>Failed</th>
                <th>First content</th>
                <th>Duration</th>
                <th>Last failure</th>
              </tr>
            </thead>
            <tbody>
              {provider.models.map((model) => (
                <ModelRow key={model.id} model={model} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </article>
  );
}

function ModelRow({ model }: { model: ProviderModel }) {
  const failure = model.last_failure;
  return (
    <tr>
      <td>
        {model.id}
        {model.names.length > 0 && <span class="hint"> ({model.names.join(", ")})</span>}
      </td>
      <td>
        <span class={`status ${model.breaker === "closed" ? "healthy" : "down"}`}>
          {model.breaker.replace("_", " ")}
        </span>
        {model.cooling_until !== null && (
          <span class="hint"> cools until {when(model.cooling_until)}</span>
        )}
      </td>
      <td>{model.requests}</td>
      <td>{model.failed_requests}</td>
      <td>{model.mean_first_content_ms !== null && duration(model.mean_first_content_ms)}</td>
      <td>{model.mean_duration_ms !== null && duration(model.mean_duration_ms)}</td>
      <td>
        {failure === null
          ? ""
          : `${failure.reason}${failure.status === null ? "" : ` (${failure.status})`}, ${when(failure.at)}`}
      </td>
    </tr>
  );
}
