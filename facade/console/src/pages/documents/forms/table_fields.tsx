// The form of a table: each cell a text, each column with an alignment. Cells over several slots stay
// what they are.
import { useState } from "preact/hooks";

import { tablesWords as text } from "../../../words/documents/tables";
import { type Block, elementsOf, leavesOf } from "../types";
import { type FieldsProps, Remove } from "./form";
import { type Holder, TextEditor, readLeaves } from "../prose/text_editor";

interface Cell {
  key: number;
  cell: Block | undefined;
  holder: Holder;
}

interface Row {
  key: number;
  row: Block | undefined;
  cells: Cell[];
}

let lastKey = 0;

function newCell(cell?: Block): Cell {
  return { key: ++lastKey, cell, holder: { view: undefined } };
}

export function TableFields({ block, provide }: FieldsProps) {
  const [rows, setRows] = useState<Row[]>(() => {
    const made = elementsOf(block).map((row) => ({
      key: ++lastKey,
      row,
      cells: elementsOf(row).map(newCell),
    }));
    return made.length > 0 ? made : [{ key: ++lastKey, row: undefined, cells: [newCell()] }];
  });
  const [align, setAlign] = useState<(string | null)[]>(block.align ?? []);
  provide(() => ({
    align: align.some((one) => one) ? columns.map((column) => align[column] || null) : null,
    children: rows.map(({ row, cells }) => ({
      ...row,
      type: "table-row",
      children: cells.map(({ cell, holder }) => ({
        ...cell,
        type: "table-cell",
        children: readLeaves(holder),
      })),
    })),
  }));
  const width = Math.max(
    1,
    ...rows.map(({ cells }) => cells.reduce((sum, { cell }) => sum + (cell?.colSpan ?? 1), 0)),
  );
  const columns = Array.from({ length: width }, (_, column) => column);
  const hasSpans = rows.some(({ cells }) =>
    cells.some(({ cell }) => (cell?.colSpan ?? 1) > 1 || (cell?.rowSpan ?? 1) > 1),
  );
  return (
    <>
      <div class="scroll">
        <table class="cells">
          <thead>
            <tr>
              {columns.map((column) => (
                <td key={column}>
                  <select
                    aria-label={text.alignmentOf(column + 1)}
                    value={align[column] ?? ""}
                    onChange={(event) => {
                      const chosen = event.currentTarget.value || null;
                      setAlign(columns.map((one) => (one === column ? chosen : (align[one] ?? null))));
                    }}
                  >
                    {Object.entries(text.alignments).map(([value, name]) => (
                      <option key={value} value={value}>
                        {name}
                      </option>
                    ))}
                  </select>
                </td>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, place) => (
              <tr key={row.key}>
                {row.cells.map((cell, column) => (
                  <td key={cell.key} colSpan={cell.cell?.colSpan} rowSpan={cell.cell?.rowSpan}>
                    <TextEditor
                      leaves={cell.cell ? leavesOf(cell.cell) : []}
                      label={text.cell(place + 1, column + 1)}
                      holder={cell.holder}
                      isFirst={place === 0 && column === 0}
                    />
                  </td>
                ))}
                {!hasSpans && rows.length > 1 && (
                  <td>
                    <Remove
                      name={text.rowToRemove(place + 1)}
                      onUse={() => setRows(rows.filter((one) => one !== row))}
                    />
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div class="actions">
        <button
          type="button"
          class="quiet"
          onClick={() => {
            const cells = Array.from({ length: width }, () => newCell());
            setRows([...rows, { key: ++lastKey, row: undefined, cells }]);
          }}
        >
          {text.addRow}
        </button>
        <button
          type="button"
          class="quiet"
          onClick={() => setRows(rows.map((row) => ({ ...row, cells: [...row.cells, newCell()] })))}
        >
          {text.addColumn}
        </button>
        {!hasSpans && width > 1 && (
          <button
            type="button"
            class="quiet"
            onClick={() =>
              setRows(rows.map((row) => ({ ...row, cells: row.cells.slice(0, width - 1) })))
            }
          >
            {text.removeColumn}
          </button>
        )}
      </div>
    </>
  );
}
