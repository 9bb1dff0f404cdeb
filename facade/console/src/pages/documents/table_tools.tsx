// Rows, columns and cells of the selected table.
import { useState } from "preact/hooks";

import { tablesWords as text } from "../../words/documents/tables";
import { useDocument } from "./context";
import type { TableEdit } from "./edits";
import { type Block, elementsOf } from "./types";

/** What can be done at a row and a column, both counted from 0. */
const ACTIONS: Record<string, (row: number, column: number) => TableEdit> = {
  rowAbove: (row) => ({ action: "insert-rows", row }),
  rowBelow: (row) => ({ action: "insert-rows", row: row + 1 }),
  columnBefore: (_, column) => ({ action: "insert-columns", column }),
  columnAfter: (_, column) => ({ action: "insert-columns", column: column + 1 }),
  mergeBeside: (row, column) => ({ action: "merge-cells", row, column, columns: 2 }),
  mergeBelow: (row, column) => ({ action: "merge-cells", row, column, rows: 2 }),
  split: (row, column) => ({ action: "split-cell", row, column }),
  deleteRow: (row) => ({ action: "delete-rows", row }),
  deleteColumn: (_, column) => ({ action: "delete-columns", column }),
};

interface Props {
  block: Block;
  isBusy: boolean;
  onRun: (act: () => Promise<void>) => Promise<void>;
}

export function TableTools({ block, isBusy, onRun }: Props) {
  const { edits } = useDocument();
  const [row, setRow] = useState(1);
  const [column, setColumn] = useState(1);
  const height = elementsOf(block).length;
  const width = block.colLength ?? 1;
  return (
    <>
      <Slot name={text.row} value={row} most={height} onChange={setRow} />
      <Slot name={text.column} value={column} most={width} onChange={setColumn} />
      <select
        aria-label={text.tools}
        value=""
        disabled={isBusy}
        onChange={(event) => {
          const edit = ACTIONS[event.currentTarget.value];
          event.currentTarget.value = "";
          if (edit) void onRun(() => edits.editTable(block, edit(row - 1, column - 1)));
        }}
      >
        <option value="">{text.cells}</option>
        {Object.entries(text.actions).map(([action, name]) => (
          <option key={action} value={action}>
            {name}
          </option>
        ))}
      </select>
    </>
  );
}

interface SlotProps {
  name: string;
  value: number;
  most: number;
  onChange: (value: number) => void;
}

function Slot({ name, value, most, onChange }: SlotProps) {
  return (
    <label class="inline slot">
      {name}
      <input
        type="number"
        min={1}
        max={Math.max(1, most)}
        value={value}
        onInput={(event) => onChange(Number(event.currentTarget.value) || 1)}
      />
    </label>
  );
}
