// Which model answers, in which dialect.
import { useEffect, useId, useRef, useState } from "preact/hooks";

import { json } from "../../api/client";
import { Failure } from "../../parts/failure";
import { price } from "../../parts/formats";
import { useLoaded } from "../../parts/loading";
import { chatWords } from "../../words/chat";
import type { Model } from "../providers/stored";
import { MAX_MODELS } from "./comparison";
import type { DialectName } from "./settings";
import { change, settings } from "./store";

const texts = chatWords.models;

// Its models make vectors alone.
const EMBEDDED = "embedded";
const SANDBOX = "sandbox";
// Models in the list; a longer one is searched.
const MAX_SHOWN = 100;

export async function listModels(signal: AbortSignal): Promise<Model[]> {
  const { data } = await json<{ data: Model[] }>("/v1/models", { signal });
  return data.filter((model) => model.owned_by !== EMBEDDED);
}

/** Return a provider's model, else the one of the sandbox that answers without a failure. */
export function firstChoice(models: readonly Model[]): Model | undefined {
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
  const { model, others, dialect } = settings.value;
  const chosen = data?.find(({ id }) => id === model);
  const text = chatWords.comparison;

  function setOther(index: number, name: string): void {
    change({ others: others.map((other, place) => (place === index ? name : other)) });
  }

  return (
    <div class="model-choice">
      <ModelField
        label={texts.label}
        model={model}
        models={data ?? []}
        onChange={(name) => change({ model: name })}
        onTouch={() => (isTouched.current = true)}
      />
      <label>
        {texts.api}
        <select
          value={dialect}
          onChange={(event) => change({ dialect: event.currentTarget.value as DialectName })}
        >
          {Object.entries(texts.apis).map(([name, label]) => (
            <option key={name} value={name}>
              {label}
            </option>
          ))}
        </select>
      </label>
      {others.map((other, index) => (
        <div key={index} class="other-model">
          <ModelField
            label={text.model(index + 2)}
            model={other}
            models={data ?? []}
            onChange={(name) => setOther(index, name)}
          />
          <button
            type="button"
            class="quiet"
            onClick={() => change({ others: others.filter((_, place) => place !== index) })}
          >
            {text.remove}
            <span class="visually-hidden"> {text.model(index + 2)}</span>
          </button>
        </div>
      ))}
      <p class="hint" hidden={others.length > 0}>
        {chosen ? described(chosen) : data && advice(data, model)}
      </p>
      {others.length < MAX_MODELS - 1 && (
        <button
          type="button"
          class="quiet small add-model"
          onClick={() => change({ others: [...others, ""] })}
        >
          {text.add}
        </button>
      )}
      <Failure error={error} />
    </div>
  );
}

/** A field for any name, with the models that match it below. */
export function ModelField({
  label,
  model,
  models,
  placeholder,
  onChange,
  onTouch,
}: {
  label: string;
  model: string;
  models: readonly Model[];
  placeholder?: string;
  onChange: (model: string) => void;
  onTouch?: () => void;
}) {
  const listId = useId();
  const [isOpen, setOpen] = useState(false);
  // All models are listed until a name is typed.
  const [query, setQuery] = useState("");
  const [place, setPlace] = useState(-1);
  const list = useRef<HTMLUListElement>(null);
  const shown = isOpen ? matching(models, query).slice(0, MAX_SHOWN) : [];
  useEffect(() => {
    list.current?.children[place]?.scrollIntoView({ block: "nearest" });
  }, [place]);

  function open(): void {
    onTouch?.();
    setQuery("");
    setPlace(-1);
    setOpen(true);
  }

  function choose(id: string): void {
    onChange(id);
    setOpen(false);
  }

  function onKeyDown(event: KeyboardEvent): void {
    const chosen = shown[place];
    if (event.key === "ArrowDown" && !isOpen) open();
    else if (event.key === "ArrowDown") setPlace(Math.min(place + 1, shown.length - 1));
    else if (event.key === "ArrowUp" && isOpen) setPlace(Math.max(place - 1, 0));
    else if (event.key === "Enter" && isOpen && chosen) choose(chosen.id);
    else if (event.key === "Escape" && isOpen) setOpen(false);
    else return;
    event.preventDefault();
  }

  return (
    <div class="model-field">
      <label>
        {label}
        <input
          role="combobox"
          aria-expanded={shown.length > 0}
          aria-controls={listId}
          aria-autocomplete="list"
          aria-activedescendant={shown[place] && `${listId}-${place}`}
          autocomplete="off"
          spellcheck={false}
          value={model}
          placeholder={placeholder}
          onFocus={(event) => {
            event.currentTarget.select();
            open();
          }}
          onBlur={() => setOpen(false)}
          onInput={(event) => {
            const { value } = event.currentTarget;
            onChange(value);
            setQuery(value);
            setPlace(-1);
            setOpen(true);
          }}
          onKeyDown={onKeyDown}
        />
      </label>
      <ul ref={list} id={listId} role="listbox" aria-label={texts.list} hidden={shown.length === 0}>
        {shown.map((one, index) => (
          <li
            key={one.id}
            id={`${listId}-${index}`}
            role="option"
            aria-selected={index === place || (place < 0 && one.id === model)}
            // The field keeps the focus, which would close the list before the click.
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => choose(one.id)}
          >
            <span>{one.id}</span>
            <span class="hint">{described(one)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Return the models whose names, providers or capabilities have all words of a query. */
function matching(models: readonly Model[], query: string): readonly Model[] {
  const parts = query.toLowerCase().split(/\s+/);
  return models.filter((model) => {
    const searched = `${model.id} ${described(model)}`.toLowerCase();
    return parts.every((part) => searched.includes(part));
  });
}

function described(model: Model): string {
  const { capabilities, max_input_tokens: context, pricing } = model;
  const parts = [texts.of(model.owned_by), texts.reads(capabilities.inputs)];
  if (context) parts.push(texts.context(context));
  if (capabilities.tools) parts.push(texts.tools);
  if (capabilities.thinking) parts.push(texts.thinks);
  if (pricing) parts.push(texts.price(price(pricing.input), price(pricing.output)));
  return parts.join(" · ");
}

function advice(models: readonly Model[], model: string): string {
  if (models.length === 0) return texts.none;
  return model === "" ? texts.count(models.length) : texts.unlisted;
}
