// Tables of web pages and spreadsheets.
import { DOMParser } from "prosemirror-model";

import type { Leaf, NewBlock } from "../types";
import { toLeaves } from "./blocks";
import { schema } from "./schema";
import { tablesOf } from "./tables";

const SPAN = /^[1-9]\d{0,2}$/;

function spanOf(cell: HTMLElement, name: "colspan" | "rowspan"): number {
  const value = cell.getAttribute(name) ?? "";
  return SPAN.test(value) ? Number(value) : 1;
}

const parser = DOMParser.fromSchema(schema);

function leavesOf(element: HTMLElement): Leaf[] {
  const line = parser.parse(element, { topNode: schema.nodes["line"]!.create() });
  return toLeaves(line);
}

/** Put blocks in place of the tables below an element; one of one cell is a frame of a page, not a table. */
export function takeTables(root: HTMLElement): void {
  for (const table of root.querySelectorAll("table")) {
    if (!root.contains(table)) continue;
    const rows = [...table.querySelectorAll("tr")].map((row) =>
      [...row.querySelectorAll<HTMLElement>("td, th")].map((cell) => ({
        children: leavesOf(cell),
        colSpan: spanOf(cell, "colspan"),
        rowSpan: spanOf(cell, "rowspan"),
      })),
    );
    const filled = rows.filter((row) => row.length > 0);
    const isFrame = filled.length === 1 && filled[0]!.length === 1;
    const tables = isFrame ? undefined : tablesOf(filled);
    if (tables === undefined) table.replaceWith(...table.querySelectorAll("td, th"));
    else table.replaceWith(...tables.map(elementOf));
  }
}

function elementOf(block: NewBlock): HTMLElement {
  const element = document.createElement("div");
  element.dataset["thing"] = block.type;
  element.dataset["made"] = JSON.stringify(block);
  return element;
}
