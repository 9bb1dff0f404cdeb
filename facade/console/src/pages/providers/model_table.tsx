// The models that callers can name: who has them, what they can do, what they cost, what follows them.
import { useState } from "preact/hooks";

import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { useLoaded } from "../../parts/loading";
import { exact, price } from "../../parts/formats";
import { providersWords } from "../../words/providers";
import { getProviders } from "../../admin/calls";
import { type Model, listModels } from "./stored";

const text = providersWords.models;
// A longer list is searched.
const MAX_SHOWN = 200;

export function ModelTable() {
  const { data, error } = useLoaded(listModels, []);
  const providers = useLoaded(getProviders, []);
  const [query, setQuery] = useState("");
  const fallbacks = new Map(providers.data?.fallbacks.map(({ id, models }) => [id, models]));
  const matches = matching(data ?? [], query);
  return (
    <section aria-labelledby="models">
      <h2 id="models">{text.title}</h2>
      <Failure error={error ?? providers.error} />
      <label class="search">
        {text.search}
        <input type="search" value={query} onInput={(event) => setQuery(event.currentTarget.value)} />
      </label>
      {data !== undefined && matches.length === 0 && (
        <Empty title={text.none}>
          <p>{text.noneHint}</p>
        </Empty>
      )}
      {matches.length > MAX_SHOWN && <p class="hint">{text.first(MAX_SHOWN, matches.length)}</p>}
      {matches.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label={text.title}>
          <table>
            <thead>
              <tr>
                {Object.values(text.columns).map((name) => (
                  <th key={name}>{name}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {matches.slice(0, MAX_SHOWN).map((model) => (
                <Row key={model.id} model={model} fallbacks={fallbacks.get(model.id) ?? []} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Row({ model, fallbacks }: { model: Model; fallbacks: readonly string[] }) {
  const { capabilities, pricing } = model;
  const abilities = [
    ...capabilities.inputs,
    ...(capabilities.tools ? [text.tools] : []),
    ...(capabilities.thinking ? [text.thinking] : []),
  ];
  return (
    <tr>
      <td>{model.id}</td>
      <td>{model.owned_by}</td>
      <td>{abilities.join(", ")}</td>
      <td>{model.max_input_tokens !== null && exact(model.max_input_tokens)}</td>
      <td>{pricing !== null && price(pricing.input)}</td>
      <td>{pricing !== null && price(pricing.output)}</td>
      <td>{fallbacks.length > 0 && `→ ${fallbacks.join(" → ")}`}</td>
    </tr>
  );
}

/** Return the models whose names or providers have all words of a query. */
function matching(models: readonly Model[], query: string): readonly Model[] {
  const parts = query.toLowerCase().split(/\s+/);
  return models.filter(({ id, owned_by }) => {
    const name = `${id} ${owned_by}`.toLowerCase();
    return parts.every((part) => name.includes(part));
  });
}
