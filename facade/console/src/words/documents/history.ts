// English texts of the history of a document.
import { exact } from "../../parts/formats";

export const historyWords = {
  title: "History",
  none: "Nothing has been edited yet.",
  earlier: "Earlier edits",
  revision: (number: number) => `Revision ${exact(number)}`,
  /** The revision that an edit undid or did again. */
  reversed: (number: number) => `(${exact(number)})`,
  you: "You",
  others: "Somebody else",
  show: "Show changes",
  hide: "Hide changes",
  restore: "Restore",
  revisionToRestore: (number: number) => `revision ${exact(number)}`,
  restoreQuestion: "Make the document what it was then? That is an edit, which can be undone.",
  noText: "No text has changed.",
  moved: "(moved, or its style changed)",
} as const;
