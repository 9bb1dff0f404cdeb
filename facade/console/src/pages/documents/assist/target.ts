// What a model is asked about: a passage, or whole blocks.
import type { Node } from "prosemirror-model";
import { type EditorState, TextSelection } from "prosemirror-state";

import { find } from "../prose/positions";
import { idOf, schema } from "../prose/schema";

const { prose } = schema.nodes;

/** Words in a block, with enough around them to be found there once. */
export interface Passage {
  readonly text: string;
  readonly before: string;
  readonly after: string;
}

export interface Target {
  /** Ids of adjacent blocks, as they were when it was made. */
  readonly blockIds: readonly string[];
  /** Of the only block; undefined for all of the blocks. */
  readonly passage: Passage | undefined;
  /** Whether the only block is a text without a word, which gives way to what is written. */
  readonly isEmpty: boolean;
}

/** Return what is selected, or the block with the caret; undefined in an empty document. */
export function targetOf({ doc, selection }: EditorState): Target | undefined {
  const [first, last] = [selection.$from.index(0), selection.$to.index(0)];
  if (first >= doc.childCount) return undefined;
  const isAtStart = last > first && selection.$to.parentOffset === 0 && selection.$to.depth > 0;
  const nodes = doc.children.slice(first, (isAtStart ? last - 1 : last) + 1);
  const [only] = nodes;
  const blockIds = nodes.map(idOf);
  if (nodes.length > 1 || only?.type !== prose) {
    return { blockIds, passage: undefined, isEmpty: false };
  }
  const isEmpty = only.content.size === 0;
  if (!(selection instanceof TextSelection) || selection.empty) {
    return { blockIds, passage: undefined, isEmpty };
  }
  const start = selection.$from.start();
  const to = isAtStart ? start + only.content.size : selection.to;
  return { blockIds, passage: passageOf(only, selection.from - start, to - start), isEmpty };
}

/** Return a part of a text without formulas and citations in it; undefined for others, or all of it. */
function passageOf(node: Node, from: number, to: number): Passage | undefined {
  const plain = (start: number, end: number): string | undefined => {
    const parts = node.slice(start, end).content;
    return parts.content.every((part) => part.isText) ? parts.textBetween(0, parts.size) : undefined;
  };
  const text = plain(from, to);
  if (text === undefined || text.trim() === "" || to - from === node.content.size) return undefined;
  const isOnce = (words: string): boolean => node.textContent.split(words).length === 2;
  let [start, end] = [from, to];
  while (!isOnce(plain(start, end)!)) {
    if (start > 0 && plain(start - 1, end) !== undefined) start -= 1;
    else if (end < node.content.size && plain(start, end + 1) !== undefined) end += 1;
    else return undefined;
  }
  return { text, before: plain(start, from)!, after: plain(to, end)! };
}

/** Return the nodes of a target, and where they are; undefined once one of them is gone. */
export function nodesOf(
  doc: Node,
  { blockIds }: Target,
  nameOf: (id: string) => string,
): { from: number; to: number; nodes: Node[] } | undefined {
  const nodes: Node[] = [];
  let [from, to] = [0, 0];
  for (const [place, id] of blockIds.entries()) {
    const at = find(doc, nameOf(id));
    if (at === undefined) return undefined;
    if (place === 0) from = at;
    nodes.push(doc.nodeAt(at)!);
    to = at + nodes.at(-1)!.nodeSize;
  }
  return { from, to, nodes };
}

/** Return where the passage of a target is; undefined if it has been changed, or there is none. */
export function passageAt(
  doc: Node,
  target: Target,
  nameOf: (id: string) => string,
): { from: number; to: number } | undefined {
  const { passage } = target;
  const block = nodesOf(doc, target, nameOf);
  const [node] = block?.nodes ?? [];
  if (passage === undefined || block === undefined || node === undefined) return undefined;
  // Atoms have a character each, so that offsets in the text are positions.
  const text = node.textBetween(0, node.content.size, undefined, "\ufffc");
  const at = text.indexOf(passage.before + passage.text + passage.after);
  if (at < 0) return undefined;
  const from = block.from + 1 + at + passage.before.length;
  return { from, to: from + passage.text.length };
}
