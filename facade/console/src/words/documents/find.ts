// English texts of finding and replacing in a document.
import { exact } from "../../parts/formats";
import { plural } from "../plural";

export const findWords = {
  title: "Find and replace",
  find: "Find",
  regex: "Regular expression",
  previous: "Previous",
  next: "Next",
  close: "Close the search",
  by: "Replace by",
  replaceHere: "Replace in this block",
  replaceAll: "Replace everywhere",
  replaced: (blocks: number) => `Replaced in ${plural(blocks, "block", "blocks")}.`,
  none: "The text is not in the document.",
  place: (at: number, count: number, hasMore: boolean, snippet: string) =>
    `${exact(at)} of ${exact(count)}${hasMore ? " and more" : ""}: ${snippet}`,
} as const;
