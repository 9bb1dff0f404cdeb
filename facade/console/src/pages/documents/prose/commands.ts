// What keys do in the text of a document.
import {
  baseKeymap,
  chainCommands,
  deleteSelection,
  joinBackward,
  selectNodeBackward,
  splitBlockAs,
  toggleMark,
} from "prosemirror-commands";
import { undoInputRule } from "prosemirror-inputrules";
import { Fragment, type Node } from "prosemirror-model";
import { liftListItem, sinkListItem, splitListItem } from "prosemirror-schema-list";
import {
  type Command,
  type EditorState,
  NodeSelection,
  Plugin,
  Selection,
  TextSelection,
  type Transaction,
} from "prosemirror-state";

import { newId } from "./blocks";
import { idOf, schema } from "./schema";

const { prose, list, item, line, thing, line_break } = schema.nodes;
const { marks } = schema;

// Eight elements one in another: lists and their items.
const DEEPEST = 8;

/** Return the text that has the caret; undefined if the selection is not in one. */
function caretText(state: EditorState): { node: Node; start: number; isAtStart: boolean } | undefined {
  const { selection } = state;
  if (!(selection instanceof TextSelection) || !selection.empty) return undefined;
  const { $from } = selection;
  return { node: $from.parent, start: $from.start(), isAtStart: $from.parentOffset === 0 };
}

/** Begin a text above the one in whose start the caret is: that one stays the block that it is. */
const insertAbove: Command = (state, dispatch) => {
  const text = caretText(state);
  if (!text?.isAtStart || text.node.type !== prose || text.node.content.size === 0) return false;
  dispatch?.(state.tr.insert(text.start - 1, prose!.create()).scrollIntoView());
  return true;
};

/** Go on with a paragraph behind a heading, and else with a text of the same kind. */
const splitText = splitBlockAs((node, isAtEnd) => {
  if (node.type !== prose) return null;
  const kind = node.attrs["kind"] as string;
  return { type: prose, attrs: { kind: isAtEnd && kind !== "quote" ? "paragraph" : kind } };
});

/** Make an empty text of another kind a paragraph. */
const becomeParagraph: Command = (state, dispatch) => {
  const text = caretText(state);
  if (text?.node.type !== prose || text.node.content.size > 0) return false;
  if (text.node.attrs["kind"] !== "quote") return false;
  dispatch?.(state.tr.setNodeAttribute(text.start - 1, "kind", "paragraph"));
  return true;
};

/** Make the item with the caret one of the list around its own, or a paragraph. */
const liftItem: Command = (state, dispatch) => {
  const text = caretText(state);
  if (text?.node.type !== line) return false;
  if (state.selection.$from.depth > 3) return liftListItem(item!)(state, dispatch);
  dispatch?.(paragraphFrom(state.tr).scrollIntoView());
  return true;
};

/** Make a paragraph of the item of a list with the caret, and lists of those around it. */
function paragraphFrom(tr: Transaction): Transaction {
  const { $from } = tr.selection;
  const [whole, at] = [$from.node(1), $from.index(1)];
  const one = whole.child(at);
  const parts: Node[] = [];
  if (at > 0) parts.push(whole.copy(whole.content.cut(0, $from.posAtIndex(at, 1) - $from.start(1))));
  parts.push(prose!.create({ id: newId() }, one.child(0).content));
  if (one.childCount > 1) parts.push(list!.create({ ...one.child(1).attrs, id: "" }, one.child(1).content));
  if (at + 1 < whole.childCount) {
    const rest = whole.content.cut($from.posAtIndex(at + 1, 1) - $from.start(1));
    parts.push(list!.create({ ...whole.attrs, id: at > 0 ? "" : idOf(whole) }, rest));
  }
  tr.replaceWith($from.before(1), $from.after(1), Fragment.from(parts));
  const before = at > 0 ? parts[0]!.nodeSize : 0;
  return tr.setSelection(TextSelection.create(tr.doc, $from.before(1) + before + 1 + $from.parentOffset));
}

const liftEmptyItem: Command = (state, dispatch) =>
  caretText(state)?.node.content.size === 0 && liftItem(state, dispatch);

const liftFirst: Command = (state, dispatch) =>
  (caretText(state)?.isAtStart ?? false) && liftItem(state, dispatch);

const sinkItem: Command = (state, dispatch) => {
  if (state.selection.$from.depth + 1 > DEEPEST) return false;
  return sinkListItem(item!)(state, dispatch);
};

const breakLine: Command = (state, dispatch) => {
  if (!state.selection.$from.parent.inlineContent) return false;
  dispatch?.(state.tr.replaceSelectionWith(line_break!.create()).scrollIntoView());
  return true;
};

/** Begin a text below the selected block, if that is no text itself. */
export const writeBelow: Command = ({ selection, tr }, dispatch) => {
  if (!(selection instanceof NodeSelection) || selection.node.type !== thing) return false;
  tr.insert(selection.to, prose!.create());
  dispatch?.(tr.setSelection(TextSelection.create(tr.doc, selection.to + 1)).scrollIntoView());
  return true;
};

const writeBelowLast: Command = (state, dispatch) =>
  state.selection.to === state.doc.content.size && writeBelow(state, dispatch);

/** Return a command that takes the caret to the start or the end of the document, and the view there. */
function goTo(isEnd: boolean, isExtended: boolean): Command {
  return ({ tr, doc, selection }, dispatch, view) => {
    const target = isEnd ? Selection.atEnd(doc) : Selection.atStart(doc);
    const isRange = isExtended && target instanceof TextSelection;
    const made = isRange ? TextSelection.between(selection.$anchor, target.$head) : target;
    dispatch?.(tr.setSelection(made).scrollIntoView());
    // Blocks get their heights as they come near, and push the place away again.
    requestAnimationFrame(() => {
      if (view?.isDestroyed === false) view.dispatch(view.state.tr.scrollIntoView());
    });
    return true;
  };
}

/** Return a command that moves the block with the selection up or down by one. */
export function moveBlock(by: 1 | -1): Command {
  return (state, dispatch) => {
    const { $from } = state.selection;
    const place = $from.index(0);
    if (place >= state.doc.childCount) return false;
    const [here, there] = [state.doc.child(place), state.doc.maybeChild(place + by)];
    if (there === null) return true;
    const start = $from.posAtIndex(Math.min(place, place + by), 0);
    const tr = state.tr.replaceWith(
      start,
      start + here.nodeSize + there.nodeSize,
      by === 1 ? [there, here] : [here, there],
    );
    const shift = by * there.nodeSize;
    const { anchor, head } = state.selection;
    tr.setSelection(
      state.selection instanceof NodeSelection
        ? NodeSelection.create(tr.doc, anchor + shift)
        : TextSelection.create(tr.doc, anchor + shift, head + shift),
    );
    dispatch?.(tr.scrollIntoView());
    return true;
  };
}

/** Make the text with the caret one of another kind, or a list; undefined where there is no text. */
export function withKind(tr: Transaction, kind: string, order?: string): Transaction | undefined {
  const { $from } = tr.selection;
  const at = $from.depth === 0 ? null : $from.before(1);
  const node = at === null ? null : tr.doc.nodeAt(at);
  if (at === null || node === null || node.type === thing) return undefined;
  if (kind !== "list") {
    if (node.type === list) paragraphFrom(tr);
    return tr.setNodeAttribute(tr.selection.$from.before(1), "kind", kind);
  }
  const rest = order === undefined ? null : { style: { orderType: order } };
  if (node.type === list) return undefined;
  const made = list!.create({ rest }, item!.create(null, line!.create(null, node.content)));
  tr.replaceWith(at, at + node.nodeSize, made);
  return tr.setSelection(TextSelection.create(tr.doc, at + 3 + $from.parentOffset));
}

/** Return a command that makes the text with the caret one of another kind, or a list. */
export function becomeKind(kind: string, order?: string): Command {
  return (state, dispatch) => {
    const tr = withKind(state.tr, kind, order);
    if (tr === undefined) return false;
    dispatch?.(tr);
    return true;
  };
}

/** Delete the block that has the selection. */
export const deleteBlock: Command = (state, dispatch) => {
  const { selection } = state;
  if (selection instanceof NodeSelection && selection.node.type === thing) {
    return deleteSelection(state, dispatch);
  }
  const { $from } = selection;
  if ($from.depth === 0) return false;
  dispatch?.(state.tr.delete($from.before(1), $from.after(1)).scrollIntoView());
  return true;
};

/** The keys of marks. */
export const MARK_KEYS: Record<string, Command> = {
  "Mod-b": toggleMark(marks["strong"]!),
  "Mod-i": toggleMark(marks["em"]!),
  "Mod-u": toggleMark(marks["underline"]!),
  "Mod-e": toggleMark(marks["code"]!),
  "Mod-Shift-s": toggleMark(marks["strike"]!),
  "Shift-Enter": breakLine,
};

export const KEYS: Record<string, Command> = {
  ...baseKeymap,
  ...MARK_KEYS,
  Enter: chainCommands(
    splitListItem(item!),
    liftEmptyItem,
    becomeParagraph,
    insertAbove,
    splitText,
    baseKeymap["Enter"]!,
  ),
  Backspace: chainCommands(
    undoInputRule,
    deleteSelection,
    liftFirst,
    joinBackward,
    selectNodeBackward,
  ),
  Tab: sinkItem,
  "Shift-Tab": liftItem,
  ArrowDown: writeBelowLast,
  // Browsers do not find the end of a text that is not rendered yet.
  "Mod-Home": goTo(false, false),
  "Mod-End": goTo(true, false),
  "Mod-Shift-Home": goTo(false, true),
  "Mod-Shift-End": goTo(true, true),
  "Alt-ArrowUp": moveBlock(-1),
  "Alt-ArrowDown": moveBlock(1),
};

/** Gives each block, list and item an id of its own: a part that was split off, or was copied, is new. */
export const ownIds = new Plugin({
  appendTransaction(transactions, _, state) {
    if (!transactions.some((one) => one.docChanged)) return null;
    const { tr } = state;
    const seen = new Set<string>();
    state.doc.descendants((node, position) => {
      if (node.type === line) return false;
      const id = idOf(node);
      if (id === "" || seen.has(id)) {
        if (node.type === thing && node.attrs["copyOf"] === "") {
          tr.setNodeAttribute(position, "copyOf", id);
        }
        const made = newId();
        tr.setNodeAttribute(position, "id", made);
        seen.add(made);
      } else seen.add(id);
      return !node.inlineContent;
    });
    if (state.doc.childCount === 0) tr.insert(0, prose!.create({ id: newId() }));
    return tr.docChanged ? tr : null;
  },
});
