// HTML of a clipboard as a part of the document. Loaded with the first paste.
import { DOMParser, type Slice } from "prosemirror-model";
import type { EditorView } from "prosemirror-view";

import { elementsOf } from "./clipboard";
import { schema } from "./schema";
import { takeTables } from "./html_tables";

/** Return what HTML has that documents do, to be put at the selection. */
export function sliceOf(view: EditorView, html: string, isKnown: (id: string) => boolean): Slice {
  const root = elementsOf(html);
  // Of blocks that are no text, only those of this document can be copied.
  for (const one of root.querySelectorAll<HTMLElement>("[data-thing]")) {
    if (!isKnown(one.dataset["copy"] ?? "")) one.remove();
  }
  takeTables(root);
  return DOMParser.fromSchema(schema).parseSlice(root, {
    preserveWhitespace: false,
    context: view.state.selection.$from,
  });
}
