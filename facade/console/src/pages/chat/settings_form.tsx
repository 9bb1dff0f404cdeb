// What a request asks for beside its conversation.
import type { ComponentChildren } from "preact";

import { PresetChoice } from "./presets";
import type { Settings } from "./settings";
import { change, settings } from "./store";

type Texts = {
  [Name in keyof Settings]: Settings[Name] extends string ? Name : never;
}[keyof Settings];

export function SettingsForm() {
  const isOfOpenAi = settings.value.dialect !== "messages";
  const hasChain = ["enabled", "strict"].includes(settings.value.fallback);
  return (
    <details class="settings">
      <summary>Parameters</summary>
      <div class="fields">
        <PresetChoice />
        <Text name="system" label="System prompt" rows={3} isWide />
        <Value name="temperature" label="Temperature" />
        <Value name="topP" label="Top p" />
        <Value name="maxTokens" label="Max output tokens" />
        {isOfOpenAi ? (
          <Choice
            name="effort"
            label="Reasoning effort"
            values={["minimal", "low", "medium", "high"]}
          />
        ) : (
          <Value name="thinkingBudget" label="Tokens to think" />
        )}
        <Text name="stop" label="Stop strings, one a line" rows={2} />
        <Choice
          name="fallback"
          label="Fallback"
          values={["auto", "enabled", "strict", "disabled"]}
        />
        {hasChain && <Text name="steps" label="Models of the chain, one a line" rows={2} />}
        <label>
          Memory
          <input
            value={settings.value.memoryId}
            placeholder="none"
            onInput={(event) => change({ memoryId: event.currentTarget.value })}
          />
        </label>
        {isOfOpenAi ? (
          <Switch
            isOn={settings.value.isJson}
            onChange={(isJson) => change({ isJson })}
          >
            Answer in JSON
          </Switch>
        ) : (
          <Switch
            isOn={settings.value.hasBuiltInTools}
            onChange={(hasBuiltInTools) => change({ hasBuiltInTools })}
          >
            Offer the gateway’s own tools
          </Switch>
        )}
        <Switch isOn={settings.value.isStored} onChange={(isStored) => change({ isStored })}>
          Keep in the list of chats
        </Switch>
        <Text
          name="tools"
          label="Tools, as JSON"
          rows={3}
          isCode
          isWide
          placeholder={'[{"name": "weather", "description": "…", "parameters": {…}}]'}
        />
        <Text
          name="further"
          label="Further fields, as JSON"
          rows={2}
          isCode
          isWide
          placeholder={'{"multimodal": {"image": {"enabled": true}}}'}
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
        placeholder="default"
        value={settings.value[name]}
        onInput={(event) => change({ [name]: event.currentTarget.value })}
      />
    </label>
  );
}

function Choice({ name, label, values }: { name: Texts; label: string; values: string[] }) {
  return (
    <label>
      {label}
      <select
        value={settings.value[name]}
        onChange={(event) => change({ [name]: event.currentTarget.value })}
      >
        <option value="">default</option>
        {values.map((value) => (
          <option key={value} value={value}>
            {value}
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
