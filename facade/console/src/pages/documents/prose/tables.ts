// Tables of clipboards as blocks. Pure: nothing here is shown or sent.
import type { Leaf, NewBlock } from "../types";

const MOST_ROWS = 200;
const MOST_COLUMNS = 50;

export interface Cell {
  readonly children: Leaf[];
  readonly colSpan: number;
  readonly rowSpan: number;
}

const EMPTY: Cell = { children: [], colSpan: 1, rowSpan: 1 };

/** Return tables with the given cells, of as many rows as a block may have; undefined if it has too many columns. */
export function tablesOf(rows: readonly (readonly Cell[])[]): NewBlock[] | undefined {
  const tables: NewBlock[] = [];
  for (let start = 0; start < rows.length; start += MOST_ROWS) {
    const table = tableOf(rows.slice(start, start + MOST_ROWS));
    if (table === undefined) return undefined;
    tables.push(table);
  }
  return tables;
}

/**
 * Return a table in which each slot has one cell: short rows are filled, and what spans too far is cut,
 * also over columns in which no cell begins.
 */
function tableOf(rows: readonly (readonly Cell[])[]): NewBlock | undefined {
  const taken = rows.map(() => new Set<number>());
  const begun = new Set<number>();
  const placed = rows.map((row, at) =>
    row.map((cell) => {
      let column = 0;
      while (taken[at]!.has(column)) column += 1;
      begun.add(column);
      let end = column + 1;
      while (end < column + cell.colSpan && !taken[at]!.has(end)) end += 1;
      const rowSpan = Math.min(cell.rowSpan, rows.length - at);
      for (const slots of taken.slice(at, at + rowSpan)) {
        for (let slot = column; slot < end; slot += 1) slots.add(slot);
      }
      return { column, end, cell: { ...cell, rowSpan } };
    }),
  );
  const columns = [...begun].sort((one, other) => one - other);
  if (columns.length === 0 || columns.length > MOST_COLUMNS) return undefined;
  const children = placed.map((row, at) => {
    const empty = columns.filter((column) => !taken[at]!.has(column));
    const cells = [
      ...row,
      ...empty.map((column) => ({ column, end: column + 1, cell: EMPTY })),
    ].sort((one, other) => one.column - other.column);
    return {
      type: "table-row",
      children: cells.map(({ column, end, cell }) => {
        const colSpan = columns.filter((one) => one >= column && one < end).length;
        return { type: "table-cell", ...cell, colSpan };
      }),
    };
  });
  return { type: "table", children };
}

/** Return the tables of a text whose cells have tabs between them, as spreadsheets copy them; undefined for others. */
export function tablesOfTabs(text: string): NewBlock[] | undefined {
  const rows = rowsOf(text.replace(/\r\n?/g, "\n").replace(/\n+$/, ""));
  const columns = rows[0]!.length;
  if (rows.length < 2 || columns < 2 || rows.some((row) => row.length !== columns)) return undefined;
  return tablesOf(
    rows.map((row) => row.map((cell) => ({ children: [{ text: cell }], colSpan: 1, rowSpan: 1 }))),
  );
}

/** Return the cells of each line; one with line breaks or tabs in it is in quotation marks. */
function rowsOf(text: string): string[][] {
  const rows: string[][] = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^\t\n]*))(\t|\n|$)/g)) {
    rows.at(-1)!.push(quoted === undefined ? plain! : quoted.replaceAll('""', '"'));
    if (end === "\n") rows.push([]);
    if (end === "") break;
  }
  return rows;
}
