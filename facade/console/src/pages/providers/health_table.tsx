// The models of a provider that were called lately, and how they did.
import { duration, when } from "../../parts/formats";
import { providersWords } from "../../words/providers";
import type { Provider, ProviderModel } from "../../admin/calls";

const text = providersWords;

export function HealthTable({ provider }: { provider: Provider }) {
  if (provider.models.length === 0) return <p class="hint">{text.notCalled}</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={text.modelsOf(provider.id)}>
      <table>
        <thead>
          <tr>
            {Object.values(text.columns).map((name) => (
              <th key={name}>{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {provider.models.map((model) => (
            <ModelRow key={model.id} model={model} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function ModelRow({ model }: { model: ProviderModel }) {
  const failure = model.last_failure;
  const status = failure?.status == null ? "" : ` (${failure.status})`;
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
        {model.cooling_until !== null && <span class="hint"> {text.cools(when(model.cooling_until))}</span>}
      </td>
      <td>{model.requests}</td>
      <td>{model.failed_requests}</td>
      <td>{model.mean_first_content_ms !== null && duration(model.mean_first_content_ms)}</td>
      <td>{model.mean_duration_ms !== null && duration(model.mean_duration_ms)}</td>
      <td>{failure !== null && `${failure.reason}${status}, ${when(failure.at)}`}</td>
    </tr>
  );
}
