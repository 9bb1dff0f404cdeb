// Which model answers, in which dialect.
import { useEffect, useRef } from "preact/hooks";

import { json } from "../../api/client";
import { Failure } from "../../parts/failure";
import { useLoaded } from "../../parts/loading";
import type { DialectName } from "./settings";
import { change, settings } from "./store";

interface Model {
  id: string;
  owned_by: string;
  max_input_tokens: number | null;
  capabilities: { inputs: string[]; tools: boolean | null; thinking: boolean | null };
}

// Its models make vectors alone.
const EMBEDDED = "embedded";
const SANDBOX = "sandbox";

async function listModels(signal: AbortSignal): Promise<Model[]> {
  const { data } = await json<{ data: Model[] }>("/v1/models", { signal });
  return data.filter((model) => model.owned_by !== EMBEDDED);
}

/** Return a provider's model, else the one of the sandbox that answers without a failure. */
function firstChoice(models: readonly Model[]): Model | undefined {
  return (
    models.find((model) => model.owned_by !== SANDBOX) ??
    models.find((model) => model.id === `${SANDBOX}/echo`) ??
    models[0]
  );
}

export function ModelChoice() {
  const { data, error } = useLoaded(listModels, []);
  // A choice that comes while somebody writes another one would be mixed up with it.
  const isTouched = useRef(false);
  useEffect(() => {
    const first = data && firstChoice(data);
    if (settings.value.model === "" && !isTouched.current && first) change({ model: first.id });
  }, [data]);
  const { model, dialect } = settings.value;
  const chosen = data?.find(({ id }) => id === model);
  return (
    <div class="model-choice">
      <label>
        Model
        <input
          list="models"
          autocomplete="off"
          spellcheck={false}
          value={model}
          onFocus={(event) => {
            isTouched.current = true;
            event.currentTarget.select();
          }}
          onInput={(event) => change({ model: event.currentTarget.value })}
        />
      </label>
      <datalist id="models">
        {data?.map(({ id, owned_by }) => (
          <option key={id} value={id} label={owned_by} />
        ))}
      </datalist>
      <label>
        API
        <select
          value={dialect}
          onChange={(event) => change({ dialect: event.currentTarget.value as DialectName })}
        >
          <option value="chat">Chat completions</option>
          <option value="messages">Messages</option>
        </select>
      </label>
      <p class="hint">{chosen ? described(chosen) : data && advice(data, model)}</p>
      <Failure error={error} />
    </div>
  );
}

function described(model: Model): string {
  const parts = [`of ${model.owned_by}`, `reads ${model.capabilities.inputs.join(", ")}`];
  if (model.max_input_tokens) parts.push(`${model.max_input_tokens.toLocaleString()} tokens`);
  if (model.capabilities.tools) parts.push("calls tools");
  if (model.capabilities.thinking) parts.push("thinks");
  return parts.join(" · ");
}

function advice(models: readonly Model[], model: string): string {
  if (models.length === 0) return "No provider has listed a model: `gateway providers` says why.";
  return model === "" ? `One of ${models.length} models.` : "Not in the list; it may still answer.";
}
