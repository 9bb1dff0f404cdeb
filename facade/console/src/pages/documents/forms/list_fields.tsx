// The form of a list: its items one below the other, each at a depth.
import { useState } from "preact/hooks";

import { type Block, type NewBlock, type Style, elementsOf, leavesOf } from "../types";
import { type FieldsProps, Remove } from "./form";
import { RichText, readLeaves } from "./rich_text";

// Eight elements one in another: lists and their items.
const MAX_DEPTH = 3;

interface Row {
  key: number;
  depth: number;
  item: Block | undefined;
  /** The nested list whose first item this one is. */
  list: { id?: string; style?: Style } | undefined;
  holder: { element: HTMLElement | null };
}

export function ListFields({ block, provide }: FieldsProps) {
  const [rows, setRows] = useState<Row[]>(() => {
    const made = flattened(block, 0);
    return made.length > 0 ? made : [emptyRow(0, 0)];
  });
  provide(() => ({ children: nested(rows, 0) }));

  function indent(row: Row, by: number): void {
    setRows(rows.map((one) => (one === row ? { ...one, depth: one.depth + by } : one)));
  }

  return (
    <>
      {rows.map((row, place) => {
        const deepest = place === 0 ? 0 : Math.min(rows[place - 1]!.depth + 1, MAX_DEPTH);
        return (
          <div key={row.key} class="row" style={{ marginLeft: `${row.depth * 1.5}rem` }}>
            <RichText
              leaves={row.item ? leavesOf(row.item) : []}
              label={`Item ${place + 1}`}
              holder={row.holder}
              isFirst={place === 0 || row.item === undefined}
            />
            <button
              type="button"
              class="quiet"
              aria-label={`Move item ${place + 1} out`}
              disabled={row.depth === 0}
              onClick={() => indent(row, -1)}
            >
              ←
            </button>
            <button
              type="button"
              class="quiet"
              aria-label={`Move item ${place + 1} in`}
              disabled={row.depth >= deepest}
              onClick={() => indent(row, 1)}
            >
              →
            </button>
            <Remove
              name={`item ${place + 1}`}
              onUse={() => setRows(rows.filter((one) => one !== row))}
            />
          </div>
        );
      })}
      <button
        type="button"
        class="quiet"
        onClick={() => {
          const key = Math.max(-1, ...rows.map((row) => row.key)) + 1;
          setRows([...rows, emptyRow(key, rows.at(-1)?.depth ?? 0)]);
        }}
      >
        Add an item
      </button>
    </>
  );
}

function emptyRow(key: number, depth: number): Row {
  return { key, depth, item: undefined, list: undefined, holder: { element: null } };
}

function flattened(list: Block, depth: number, rows: Row[] = []): Row[] {
  elementsOf(list).forEach((item, place) => {
    const own = depth > 0 && place === 0 ? { id: list.id, style: list.style } : undefined;
    rows.push({ key: rows.length, depth, item, list: own, holder: { element: null } });
    for (const inner of elementsOf(item)) flattened(inner, depth + 1, rows);
  });
  return rows;
}

/** Return the items of a list at a depth; deeper rows go into the item before them. */
function nested(rows: Row[], depth: number): NewBlock[] {
  const items: NewBlock[] = [];
  let place = 0;
  while (place < rows.length) {
    const row = rows[place]!;
    let end = place + 1;
    while (end < rows.length && rows[end]!.depth > depth) end += 1;
    const inner = rows.slice(place + 1, end);
    const { children: _, ...kept } = row.item ?? { type: "list-item" };
    const children: NonNullable<NewBlock["children"]> = readLeaves(row.holder.element);
    if (inner.length > 0) {
      children.push({ ...inner[0]!.list, type: "list", children: nested(inner, depth + 1) });
    }
    items.push({ ...kept, type: "list-item", children });
    place = end;
  }
  return items;
}
