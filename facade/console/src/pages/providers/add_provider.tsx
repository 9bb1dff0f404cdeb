// Adds a provider: by the key of one that is known, or by the address of another server.
import { useState } from "preact/hooks";

import { useActions } from "../../parts/actions";
import { CopyButton } from "../../parts/copy";
import { Failure } from "../../parts/failure";
import { words } from "../../words/common";
import { providersWords } from "../../words/providers";
import {
  type Described,
  KINDS,
  type Kind,
  type Preset,
  type ProviderTest,
  settingsLines,
  storeProvider,
  testProvider,
} from "./stored";
import { TestResult } from "./test_result";

const text = providersWords.add;
const OTHER = "";

export function AddProvider({
  presets,
  canStore,
  taken,
  onAdded,
}: {
  presets: readonly Preset[];
  canStore: boolean;
  /** Names of the providers that there are. */
  taken: readonly string[];
  onAdded: () => void;
}) {
  const free = presets.filter(({ id }) => !taken.includes(id));
  const [choice, setChoice] = useState<string>();
  const [test, setTest] = useState<ProviderTest>();
  const [lines, setLines] = useState("");
  const [isBusy, setBusy] = useState(false);
  const { error, run } = useActions();
  // Until somebody chooses, and once there is a provider of the chosen name, it is the first one.
  const isOpen = choice === OTHER || free.some(({ id }) => id === choice);
  const chosen = isOpen ? choice : (free[0]?.id ?? OTHER);
  const preset = free.find(({ id }) => id === chosen);

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const { name, described } = read(form, preset);
    const isTest = (event.submitter as HTMLButtonElement | null)?.value === "test";
    setBusy(true);
    setLines("");
    setTest(undefined);
    await run(async () => {
      if (isTest) {
        setTest(await testProvider(name, { ...described, api_key: described.api_key ?? "" }));
      } else if (canStore) {
        await storeProvider(name, described);
        form.reset();
        setChoice(undefined);
        onAdded();
      } else {
        setLines(settingsLines(name, described, preset?.key_variable ?? variableOf(name)));
      }
    });
    setBusy(false);
  }

  return (
    <section aria-labelledby="add-provider">
      <h2 id="add-provider">{text.title}</h2>
      {!canStore && <p class="hint">{text.cannotStore}</p>}
      <form class="actions" aria-label={text.title} onSubmit={(event) => void submit(event)}>
        <label>
          {text.provider}
          <select
            value={chosen}
            onChange={(event) => {
              setChoice(event.currentTarget.value);
              setTest(undefined);
              setLines("");
            }}
          >
            {free.map(({ id }) => (
              <option key={id} value={id}>
                {id}
              </option>
            ))}
            <option value={OTHER}>{text.other}</option>
          </select>
        </label>
        {preset === undefined && (
          <>
            <label>
              {text.name}
              <input name="name" required autocomplete="off" pattern="[A-Za-z0-9][A-Za-z0-9._@+\-]*" />
            </label>
            <label>
              {text.kind}
              <select name="kind">
                {KINDS.map((kind) => (
                  <option key={kind} value={kind}>
                    {text.kinds[kind]}
                  </option>
                ))}
              </select>
            </label>
            <label>
              {text.address}
              <input
                name="base_url"
                type="url"
                required
                autocomplete="off"
                placeholder={text.addressExample}
              />
            </label>
          </>
        )}
        <label>
          {preset === undefined ? text.optionalKey : text.key}
          <input
            name="api_key"
            type="password"
            autocomplete="off"
            spellcheck={false}
            required={preset !== undefined && canStore}
          />
        </label>
        <button type="submit" value="test" class="quiet" disabled={isBusy}>
          {text.test}
        </button>
        <button type="submit" value="add" disabled={isBusy}>
          {canStore ? text.add : text.show}
        </button>
      </form>
      {preset && <p class="hint">{preset.base_url}</p>}
      <TestResult test={test} />
      <Failure error={error} />
      {lines !== "" && (
        <div class="secret">
          <p>{text.lines}</p>
          <pre>{lines}</pre>
          <CopyButton text={lines} label={words.copy} name={text.theLines} />
        </div>
      )}
    </section>
  );
}

function read(form: HTMLFormElement, preset: Preset | undefined): { name: string; described: Described } {
  const data = new FormData(form);
  const field = (name: string): string => String(data.get(name) ?? "").trim();
  const key = field("api_key");
  const described: Described = key === "" ? {} : { api_key: key };
  if (preset !== undefined) return { name: preset.id, described };
  return {
    name: field("name"),
    described: { ...described, kind: field("kind") as Kind, base_url: field("base_url") },
  };
}

/** Return a variable for the key of a server. */
function variableOf(name: string): string {
  return `${name.toUpperCase().replace(/[^A-Z0-9]+/g, "_")}_API_KEY`;
}
