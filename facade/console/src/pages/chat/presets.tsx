// System prompts and parameters under names of the user's. They stay in this browser, also after the
// sign-out: for the same user alone.
import { computed, signal } from "@preact/signals";
import { useState } from "preact/hooks";

import { userId } from "../../shell/session";
import { chatWords } from "../../words/chat";
import { DEFAULTS, type Settings } from "./settings";
import { change, settings } from "./store";

const MAX_PRESETS = 50;
const MAX_NAME = 60;

type Presets = Readonly<Record<string, Partial<Settings>>>;

// Changed by `keep` alone; it makes the presets be read again.
const revision = signal(0);
const presets = computed((): Presets => (revision.value, read(userId.value)));

const keyOf = (user: string): string => `gateway.presets.${user}`;

function read(user: string): Presets {
  try {
    const written: unknown = JSON.parse(localStorage.getItem(keyOf(user)) ?? "{}");
    return typeof written === "object" && written !== null ? (written as Presets) : {};
  } catch {
    return {};
  }
}

/** Keep presets; return whether the browser had room for them. */
function keep(changed: Presets): boolean {
  try {
    localStorage.setItem(keyOf(userId.value), JSON.stringify(changed));
    return true;
  } catch {
    return false;
  } finally {
    revision.value += 1;
  }
}

/** Return the settings that a preset has: those that differ from the defaults. */
function changedSettings(): Partial<Settings> {
  const names = Object.keys(DEFAULTS) as (keyof Settings)[];
  return Object.fromEntries(
    names
      .filter((name) => JSON.stringify(settings.value[name]) !== JSON.stringify(DEFAULTS[name]))
      .map((name) => [name, settings.value[name]]),
  );
}

export function PresetChoice() {
  const text = chatWords.presets;
  const [chosen, setChosen] = useState("");
  const [problem, setProblem] = useState("");
  const names = Object.keys(presets.value).sort((one, other) => one.localeCompare(other));

  function apply(name: string): void {
    setChosen(name);
    const preset = presets.value[name];
    if (preset === undefined) return;
    const { model } = settings.value;
    change({ ...DEFAULTS, model, ...preset });
  }

  function save(name: string): void {
    const isNew = !Object.hasOwn(presets.value, name);
    if (isNew && names.length >= MAX_PRESETS) return setProblem(text.tooMany(MAX_PRESETS));
    const isKept = keep({ ...presets.value, [name]: changedSettings() });
    setProblem(isKept ? "" : text.noRoom);
    setChosen(name);
  }

  function remove(): void {
    const { [chosen]: _, ...others } = presets.value;
    keep(others);
    setChosen("");
  }

  return (
    <div class="presets wide">
      <label>
        {text.title}
        <select value={chosen} onChange={(event) => apply(event.currentTarget.value)}>
          <option value="">{names.length === 0 ? text.noneYet : text.none}</option>
          {names.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {chosen !== "" && (
        <button type="button" class="quiet" onClick={remove}>
          {text.remove}
          <span class="visually-hidden"> {chosen}</span>
        </button>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const name = String(new FormData(event.currentTarget).get("name") ?? "").trim();
          if (name === "") return;
          save(name);
          event.currentTarget.reset();
        }}
      >
        <label>
          {text.name}
          <input name="name" maxLength={MAX_NAME} autocomplete="off" required />
        </label>
        <button class="quiet">{text.save}</button>
      </form>
      {problem !== "" && <p role="alert">{problem}</p>}
    </div>
  );
}
