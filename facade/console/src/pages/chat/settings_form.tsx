// What a request asks for beside its conversation.
import type { ComponentChildren } from "preact";

import { chatWords } from "../../words/chat";
import { PresetChoice } from "./presets";
import type { Settings } from "./settings";
import { change, settings } from "./store";

const text = chatWords.settings;

type Texts = {
  [Name in keyof Settings]: Settings[Name] extends string ? Name : never;
}[keyof Settings];

export function SettingsForm() {
  const isOfOpenAi = settings.value.dialect !== "messages";
  const hasChain = ["enabled", "strict"].includes(settings.value.fallback);
  return (
    <details class="settings">
      <summary>{text.title}</summary>
      <div class="fields">
        <PresetChoice />
        <Text name="system" label={text.system} rows={3} isWide />
        <Value name="temperature" label={text.temperature} />
        <Value name="topP" label={text.topP} />
        <Value name="maxTokens" label={text.maxTokens} />
        {isOfOpenAi ? (
          <Choice
            name="effort"
            label={text.effort}
            values={text.efforts}
          />
        ) : (
          <Value name="thinkingBudget" label={text.thinkingBudget} />
        )}
        <Text name="stop" label={text.stop} rows={2} />
        <Choice
          name="fallback"
          label={text.fallback}
          values={text.fallbacks}
        />
        {hasChain && <Text name="steps" label={text.steps} rows={2} />}
        <label>
          {text.memory}
          <input
            value={settings.value.memoryId}
            placeholder={text.noMemory}
            onInput={(event) => change({ memoryId: event.currentTarget.value })}
          />
        </label>
        {isOfOpenAi ? (
          <Switch
            isOn={settings.value.isJson}
            onChange={(isJson) => change({ isJson })}
          >
            {text.json}
          </Switch>
        ) : (
          <Switch
            isOn={settings.value.hasBuiltInTools}
            onChange={(hasBuiltInTools) => change({ hasBuiltInTools })}
          >
            {text.builtInTools}
          </Switch>
        )}
        <Switch isOn={settings.value.isStored} onChange={(isStored) => change({ isStored })}>
          {text.stored}
        </Switch>
        <Text
          name="tools"
          label={text.tools}
          rows={3}
          isCode
          isWide
          placeholder={text.toolsExample}
        />
        <Text
          name="further"
          label={text.further}
          rows={2}
          isCode
          isWide
          placeholder={text.furtherExample}
        />
      </div>
    </details>
  );
}

function Value({ name, label }: { name: Texts; label: string }) {
  return (
    <label>
      {label}
      <input
        inputMode="decimal"
        placeholder={text.default}
        value={settings.value[name]}
        onInput={(event) => change({ [name]: event.currentTarget.value })}
      />
    </label>
  );
}

function Choice({
  name,
  label,
  values,
}: {
  name: Texts;
  label: string;
  values: Readonly<Record<string, string>>;
}) {
  return (
    <label>
      {label}
      <select
        value={settings.value[name]}
        onChange={(event) => change({ [name]: event.currentTarget.value })}
      >
        <option value="">{text.default}</option>
        {Object.entries(values).map(([value, shown]) => (
          <option key={value} value={value}>
            {shown}
          </option>
        ))}
      </select>
    </label>
  );
}

function Text({
  name,
  label,
  rows,
  placeholder,
  isCode = false,
  isWide = false,
}: {
  name: Texts;
  label: string;
  rows: number;
  placeholder?: string;
  isCode?: boolean;
  isWide?: boolean;
}) {
  return (
    <label class={isWide ? "wide" : undefined}>
      {label}
      <textarea
        class={isCode ? "code" : undefined}
        rows={rows}
        spellcheck={!isCode}
        placeholder={placeholder}
        value={settings.value[name]}
        onInput={(event) => change({ [name]: event.currentTarget.value })}
      />
    </label>
  );
}

function Switch({
  isOn,
  onChange,
  children,
}: {
  isOn: boolean;
  onChange: (isOn: boolean) => void;
  children: ComponentChildren;
}) {
  return (
    <label class="switch">
      <input
        type="checkbox"
        checked={isOn}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span>{children}</span>
    </label>
  );
}
