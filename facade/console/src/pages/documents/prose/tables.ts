// Tables of clipboards as blocks. Pure: nothing here is shown or sent.
import type { Leaf, NewBlock } from "../types";

const MOST_ROWS = 200;
const MOST_COLUMNS = 50;

export interface Cell {
  readonly children: Leaf[];
  readonly colSpan: number;
  readonly rowSpan: number;
}

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

/** Return a table in which each slot has one cell: what spans too far is cut, and short rows are filled. */
function tableOf(rows: readonly (readonly Cell[])[]): NewBlock | undefined {
  const taken = rows.map(() => new Set<number>());
  const placed: { column: number; cell: NewBlock }[][] = rows.map((row, at) => {
    let column = 0;
    return row.map(({ children, colSpan, rowSpan }) => {
      while (taken[at]!.has(column)) column += 1;
      const place = column;
      let width = 1;
      while (width < colSpan && !taken[at]!.has(column + width)) width += 1;
      const height = Math.min(rowSpan, rows.length - at);
      for (let down = 0; down < height; down += 1) {
        for (let right = 0; right < width; right += 1) taken[at + down]!.add(column + right);
      }
      return { column: place, cell: { type: "table-cell", children, colSpan: width, rowSpan: height } };
    });
  });
  const columns = Math.max(0, ...taken.map((slots) => Math.max(-1, ...slots) + 1));
  if (columns === 0 || columns > MOST_COLUMNS) return undefined;
  const children = placed.map((row, at) => {
    for (let column = 0; column < columns; column += 1) {
      if (!taken[at]!.has(column)) row.push({ column, cell: { type: "table-cell", children: [] } });
    }
    row.sort((one, other) => one.column - other.column);
    return { type: "table-row", children: row.map(({ cell }) => cell) };
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
