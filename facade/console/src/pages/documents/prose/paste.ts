// What is pasted. HTML of the clipboard is read by a parser of our own: the page's policy lets no text
// become HTML.
import { Fragment, Slice } from "prosemirror-model";
import type { EditorView } from "prosemirror-view";

import type { Shared } from "../context";
import { writeBelow } from "./commands";
import { isLatex, pasteLatex, withFormulas } from "./latex";
import { schema } from "./schema";
import { tablesOfTabs } from "./tables";

const { prose, line, line_break, thing } = schema.nodes;

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
  if (text !== "") insert(view, plain(view, text));
}

const asWritten = (part: string): Fragment => Fragment.from(schema.text(part));

/** Return the lines of a text: texts of their own where the selection is in a block. */
function plain(view: EditorView, text: string, contentOf = asWritten): Slice {
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
    .map((part) => prose!.create(null, contentOf(part)));
  return new Slice(Fragment.from(texts), 1, 1);
}

/** Insert what is on a clipboard, with the marks and blocks that its HTML, LaTeX or table has. */
export function pasteRich(view: EditorView, transfer: DataTransfer | null, shared: Shared): void {
  const html = transfer?.getData("text/html") ?? "";
  const text = transfer?.getData("text/plain") ?? "";
  if (html === "" && text === "") return;
  const asText = () => insert(view, plain(view, text));
  if (isPastedPlain(view)) asText();
  // Editors of code put their colours as HTML beside it.
  else if (isLatex(text)) void pasteLatex(view, shared, text, asText);
  else if (html === "") insert(view, tables(view, text) ?? plain(view, text, withFormulas));
  else {
    void import("./html").then(
      ({ sliceOf }) => {
        const isKnown = (id: string) => shared.sync.original(id) !== undefined;
        if (!view.isDestroyed) insert(view, sliceOf(view, html, isKnown));
      },
      () => {
        if (!view.isDestroyed) asText();
      },
    );
  }
}

function insert(view: EditorView, slice: Slice): void {
  view.dispatch(view.state.tr.replaceSelection(slice).scrollIntoView());
}

/** Return whether the keys were those of pasting without formats. */
function isPastedPlain(view: EditorView): boolean {
  return (view as unknown as { input?: { shiftKey?: boolean } }).input?.shiftKey ?? false;
}

function tables(view: EditorView, text: string): Slice | undefined {
  if (view.state.selection.$from.depth > 1) return undefined;
  const made = tablesOfTabs(text)?.map((one) => thing!.create({ kind: "table", made: one }));
  return made && new Slice(Fragment.from(made), 0, 0);
}
