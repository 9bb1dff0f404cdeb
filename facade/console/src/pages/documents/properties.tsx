// Styles of a block and of the document.
import { useState } from "preact/hooks";

import { Failure } from "../../parts/failure";
import { stylesWords as text } from "../../words/documents/styles";
import { useDocument } from "./context";
import type { Entry } from "./document";
import type { Block } from "./types";

interface Property {
  /** Path in the style. */
  readonly path: readonly [string] | readonly [string, string];
  /** Values to choose from, "" for none; a text where absent, a check box for "flag". */
  readonly values?: readonly string[] | "flag";
}

const CSS: Property[] = [
  { path: ["style", "color"] },
  { path: ["style", "backgroundColor"] },
  { path: ["style", "fontSize"] },
  { path: ["style", "lineHeight"] },
];
const SERIAL: Property = { path: ["serial"], values: "flag" };
const INDEX: Property = { path: ["isHideIndex"], values: "flag" };
const OF_TYPE: Record<string, Property[]> = {
  paragraph: [{ path: ["indent"], values: "flag" }],
  h1: [INDEX],
  h2: [INDEX],
  h3: [INDEX],
  h4: [INDEX],
  h5: [INDEX],
  h6: [INDEX],
  abstract: [{ path: ["language"], values: ["", "none", "en", "zh"] }],
  label: [{ path: ["nameWidth"] }],
  equation: [SERIAL],
  image: [SERIAL, { path: ["columns"], values: ["", "1", "2", "3"] }],
  code: [{ path: ["isHideLanguage"], values: "flag" }],
  list: [
    {
      path: ["orderType"],
      values: ["", "disc", "decimal", "lower-alpha", "upper-alpha", "lower-roman", "upper-roman"],
    },
  ],
  table: [
    { path: ["textAlign"], values: ["", "start", "center", "end"] },
    { path: ["firstColBold"], values: "flag" },
  ],
};
const OF_DOCUMENT: Property[] = [
  {
    path: ["global", "paperSize"],
    values: ["", "A3", "A4", "A5", "B5", "Letter", "Legal"],
  },
  { path: ["global", "orientation"], values: ["", "portrait", "landscape"] },
  { path: ["global", "fontFamily"] },
  { path: ["global", "fontSize"] },
  { path: ["global", "lineHeight"] },
  { path: ["global", "color"] },
];
const INTEGERS = new Set(["columns"]);

export function Properties({ entry, block }: { entry: Entry; block: Block }) {
  const { edits } = useDocument();
  const properties = [...(OF_TYPE[block.type] ?? []), ...CSS];
  return (
    <Form
      label={text.ofBlock}
      properties={properties}
      style={entry.state.value?.block.style ?? {}}
      onChange={(patch) => edits.restyle(block.id, patch)}
    />
  );
}

export function DocumentProperties() {
  const { document, edits } = useDocument();
  return (
    <Form
      label={text.ofDocument}
      properties={OF_DOCUMENT}
      style={document.style.value}
      onChange={(patch) => edits.restyleArticle(patch)}
    />
  );
}

function Form({
  label,
  properties,
  style,
  onChange,
}: {
  label: string;
  properties: readonly Property[];
  style: Record<string, unknown>;
  onChange: (patch: Record<string, unknown>) => Promise<void>;
}) {
  const [error, setError] = useState<unknown>();

  async function set({ path }: Property, value: unknown): Promise<void> {
    const [outer, inner] = path;
    setError(undefined);
    try {
      await onChange({ [outer]: inner === undefined ? value : { [inner]: value } });
    } catch (failure) {
      setError(failure);
    }
  }

  return (
    <fieldset class="properties">
      <legend>{label}</legend>
      {properties.map((property) => (
        <Field
          key={property.path.join(".")}
          property={property}
          value={found(style, property.path)}
          onSet={(value) => void set(property, value)}
        />
      ))}
      <Failure error={error} />
    </fieldset>
  );
}

function Field({
  property,
  value,
  onSet,
}: {
  property: Property;
  value: unknown;
  onSet: (value: unknown) => void;
}) {
  const { values, path } = property;
  const name = path.at(-1)!;
  const label = text.labels[name as keyof typeof text.labels];
  if (values === "flag") {
    return (
      <label class="check">
        <input
          type="checkbox"
          checked={value === true}
          onChange={(event) => onSet(event.currentTarget.checked || null)}
        />
        {label}
      </label>
    );
  }
  const shown = value === undefined || value === null ? "" : String(value);
  const read = (entered: string) => {
    if (entered === "") return null;
    return INTEGERS.has(name) ? Number(entered) : entered;
  };
  if (values === undefined) {
    return (
      <label>
        {label}
        <input value={shown} onChange={(event) => onSet(read(event.currentTarget.value.trim()))} />
      </label>
    );
  }
  return (
    <label>
      {label}
      <select value={shown} onChange={(event) => onSet(read(event.currentTarget.value))}>
        {values.map((one) => (
          <option key={one} value={one}>
            {text.values[one] ?? one}
          </option>
        ))}
      </select>
    </label>
  );
}

function found(style: Record<string, unknown>, path: Property["path"]): unknown {
  const [outer, inner] = path;
  if (inner === undefined) return style[outer];
  return (style[outer] as Record<string, unknown> | undefined)?.[inner];
}
