// English texts of tables in documents: their forms, and what can be done with their cells.
import { exact } from "../../parts/formats";

export const tablesWords = {
  table: "Table",
  row: "Row",
  column: "Column",
  tools: "Rows, columns and cells",
  cells: "Cells…",
  actions: {
    rowAbove: "Insert a row above",
    rowBelow: "Insert a row below",
    columnBefore: "Insert a column before",
    columnAfter: "Insert a column after",
    mergeBeside: "Merge with the cell beside",
    mergeBelow: "Merge with the cell below",
    split: "Split the cell",
    deleteRow: "Delete the row",
    deleteColumn: "Delete the column",
  },
  alignments: { "": "As the text", start: "Left", center: "Centre", end: "Right" },
  alignmentOf: (column: number) => `Alignment of column ${exact(column)}`,
  cell: (row: number, column: number) => `Row ${exact(row)}, column ${exact(column)}`,
  rowToRemove: (row: number) => `row ${exact(row)}`,
  addRow: "Add a row",
  addColumn: "Add a column",
  removeColumn: "Remove the last column",
} as const;
