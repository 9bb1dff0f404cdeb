// The types of blocks to insert, each with what it begins with.
import { blocksWords } from "../../words/documents/blocks";
import type { Shared } from "./context";
import { type NewBlock, TEXT_TYPES } from "./types";

const cell = () => ({ type: "table-cell", children: [] });
const row = () => ({ type: "table-row", children: [cell(), cell()] });

/** Return a block of a type to begin with. */
export function empty(type: string): NewBlock {
  switch (type) {
    case "list":
      return { type, children: [{ type: "list-item", children: [] }] };
    case "table":
      return { type, children: [row(), row()] };
    case "numbered":
      return { ...empty("list"), style: { orderType: "decimal" } };
    case "items":
      return { type: "label", children: [{ type: "label-item", name: "", children: [] }] };
    case "equation":
      return { type, equation: "" };
    case "code":
      return { type, code: "", language: "" };
    case "image":
      return { type, image: [] };
    case "author":
      return { type, author: [], institution: [] };
    default:
      return { type, children: [] };
  }
}

/** Types that a menu offers, with their names. */
export const CHOICES: [string, string][] = [
  ...Object.entries(blocksWords.names),
  ["numbered", blocksWords.numberedList],
  ["items", blocksWords.labelWithItems],
];

/** Insert a block below one, or at the beginning for "", and let it be written. */
export async function insertBelow(
  { document, edits }: Shared,
  after: string,
  made: NewBlock,
): Promise<void> {
  const id = await edits.insert(after, [made]);
  const isText = TEXT_TYPES.includes(made.type) || made.type === "list";
  if (isText && made.children?.every((child) => !("name" in child))) document.wanted.value = id;
  else {
    document.select(id);
    document.entry(id).isEditing.value = true;
  }
}

export function InsertMenu({
  label,
  isBusy,
  onChoose,
}: {
  label: string;
  isBusy: boolean;
  onChoose: (block: NewBlock) => Promise<void>;
}) {
  return (
    <select
      aria-label={label}
      value=""
      disabled={isBusy}
      onChange={(event) => {
        const { value } = event.currentTarget;
        event.currentTarget.value = "";
        if (value) void onChoose(empty(value));
      }}
    >
      <option value="">{label}</option>
      {CHOICES.map(([type, name]) => (
        <option key={type} value={type}>
          {name}
        </option>
      ))}
    </select>
  );
}
