// LaTeX of a clipboard: blocks by the import of the API, formulas in a sentence by their dollars.
import { Fragment, type Node } from "prosemirror-model";
import type { EditorView } from "prosemirror-view";

import { editsWords } from "../../../words/documents/edits";
import type { Shared } from "../context";
import { idOf, schema } from "./schema";

const { prose, formula } = schema.nodes;

/** What makes a text LaTeX that has blocks: an environment, a heading, an item or a displayed formula. */
const BLOCKS =
  /\\(?:begin|(?:sub){0,2}section\*?|chapter\*?|documentclass|maketitle|includegraphics)\s*[[{]|^\s*\\item\b|^\s*\\\[|^\s*\$\$/m;
/** As in Pandoc: no space within the dollars, and no digit behind them. */
const DOLLARS = /(?<!\\)\$([^\s$](?:[^$\n]*[^\s$\\])?)\$(?!\d)|\\\(([^\n]+?)\\\)/g;

/** Return whether a text is LaTeX of more than a sentence. */
export function isLatex(text: string): boolean {
  return BLOCKS.test(text);
}

/** Return a line as texts and formulas. */
export function withFormulas(line: string): Fragment {
  const nodes: Node[] = [];
  let end = 0;
  for (const match of line.matchAll(DOLLARS)) {
    if (match.index > end) nodes.push(schema.text(line.slice(end, match.index)));
    nodes.push(formula!.create({ tex: (match[1] ?? match[2])!.trim() }));
    end = match.index + match[0].length;
  }
  if (end < line.length) nodes.push(schema.text(line.slice(end)));
  return Fragment.from(nodes);
}

/** Insert LaTeX at the selection; `asText` inserts it as it is, where it cannot be converted. */
export async function pasteLatex(
  view: EditorView,
  shared: Shared,
  text: string,
  asText: () => void,
): Promise<void> {
  const { document, edits } = shared;
  const after = makeRoom(view);
  try {
    const { ids, lost } = await edits.importText("latex", text, after, editsWords.names.paste);
    shared.lost.value = lost;
    document.wanted.value = ids.at(-1) ?? "";
  } catch (error) {
    if (!view.isDestroyed) asText();
    edits.failure.value = error;
  }
}

/** Split the text at the caret, so that blocks can come between; return the id of that before them, or "". */
function makeRoom(view: EditorView): string {
  if (!view.state.selection.empty) view.dispatch(view.state.tr.deleteSelection());
  const { doc, tr, selection } = view.state;
  const { $from } = selection;
  const place = $from.index(0);
  const here = doc.maybeChild(place);
  const before = place > 0 ? idOf(doc.child(place - 1)) : "";
  if (here?.type !== prose) return here === null ? before : idOf(here);
  if (here.content.size === 0) {
    // An empty text gives way; that of an empty document is not stored.
    if (doc.childCount > 1) view.dispatch(tr.delete($from.before(), $from.after()));
    return before;
  }
  if ($from.parentOffset === 0) return before;
  if ($from.parentOffset < here.content.size) view.dispatch(tr.split($from.pos));
  return idOf(here);
}
