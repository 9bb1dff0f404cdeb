// What is pasted. HTML of the clipboard is read by a parser of our own: the page's policy lets no text
// become HTML.
import { DOMParser, Fragment, Slice } from "prosemirror-model";
import type { EditorView } from "prosemirror-view";

import { writeBelow } from "./commands";
import { schema } from "./schema";

const { prose, line, line_break } = schema.nodes;

/** Handle an event in place of the editor and the browser. */
export function takeOver(view: EditorView, event: Event, act: () => void): boolean {
  event.preventDefault();
  // What is pasted replaces no table or figure because that is selected.
  writeBelow(view.state, view.dispatch);
  act();
  return true;
}

/** Insert the plain text of a clipboard: each line a text of its own where the selection is in a block. */
export function pasteText(view: EditorView, transfer: DataTransfer | null): void {
  const text = transfer?.getData("text/plain") ?? "";
  if (text !== "") view.dispatch(view.state.tr.replaceSelection(plain(view, text)).scrollIntoView());
}

function plain(view: EditorView, text: string): Slice {
  const lines = text.replace(/\r\n?/g, "\n").replace(/\n+$/, "").split("\n");
  const { $from } = view.state.selection;
  if ($from.parent.type === line || $from.depth === 0) {
    const nodes = lines.flatMap((part, place) => [
      ...(place > 0 ? [line_break!.create()] : []),
      ...(part === "" ? [] : [schema.text(part)]),
    ]);
    return new Slice(Fragment.from(nodes), 0, 0);
  }
  const texts = lines
    .filter((part) => part.trim() !== "")
    .map((part) => prose!.create(null, schema.text(part)));
  return new Slice(Fragment.from(texts), 1, 1);
}

/** Insert what is on a clipboard, with the marks and blocks that its HTML has. */
export function pasteRich(
  view: EditorView,
  transfer: DataTransfer | null,
  isKnown: (id: string) => boolean,
): void {
  const html = transfer?.getData("text/html") ?? "";
  if (html === "") {
    pasteText(view, transfer);
    return;
  }
  const text = transfer?.getData("text/plain") ?? "";
  void import("./clipboard").then(
    ({ elementsOf }) => {
      if (view.isDestroyed) return;
      const root = elementsOf(html);
      // Of blocks that are no text, only those of this document can be copied.
      for (const one of root.querySelectorAll<HTMLElement>("[data-thing]")) {
        if (!isKnown(one.dataset["copy"] ?? "")) one.remove();
      }
      const parsed = DOMParser.fromSchema(schema).parseSlice(root, {
        preserveWhitespace: false,
        context: view.state.selection.$from,
      });
      view.dispatch(view.state.tr.replaceSelection(parsed).scrollIntoView());
    },
    () => {
      if (!view.isDestroyed) view.dispatch(view.state.tr.replaceSelection(plain(view, text)));
    },
  );
}

