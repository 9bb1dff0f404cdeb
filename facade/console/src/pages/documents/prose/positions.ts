// Where blocks are in the document of the editor, and where the selection is when they have changed.
import type { Node } from "prosemirror-model";
import { NodeSelection, Selection, TextSelection, type Transaction } from "prosemirror-state";

import { mapped } from "./rebase";
import { idOf } from "./schema";

/** Return the position in front of the block at a place. */
export function positionOf(doc: Node, place: number): number {
  let position = 0;
  for (let at = 0; at < place; at += 1) position += doc.child(at).nodeSize;
  return position;
}

/** Return the position of a block; undefined if the document does not have it. */
export function find(doc: Node, id: string): number | undefined {
  let position = 0;
  for (const node of doc.children) {
    if (idOf(node) === id) return position;
    position += node.nodeSize;
  }
  return undefined;
}

/** Put the selection of an old state where it was in its blocks. */
export function selectAgain(
  tr: Transaction,
  selection: Selection,
  old: Node,
  nameOf: (id: string) => string,
): void {
  function moved(position: number): { at: number; node: Node } | undefined {
    const place = old.resolve(position);
    const index = place.index(0);
    if (index >= old.childCount) return undefined;
    const before = old.child(index);
    const at = find(tr.doc, nameOf(idOf(before)));
    const node = at === undefined ? null : tr.doc.nodeAt(at);
    if (at === undefined || node === null) return undefined;
    const within = Math.max(0, position - place.posAtIndex(index, 0) - 1);
    if (!node.isAtom && before.type === node.type) {
      return { at: at + 1 + Math.min(mapped(within, before, node), node.content.size), node };
    }
    // Of a block that was no text, or had not been read, the caret is at the end.
    const end = Math.max(at + 1, at + node.nodeSize - 1);
    return { at: node.isAtom ? at : Selection.near(tr.doc.resolve(end), -1).head, node };
  }
  const { anchor } = selection;
  // That of a whole block ends in front of the next one.
  const head = selection instanceof NodeSelection ? anchor : selection.head;
  const [one, other] = [moved(anchor), moved(head)];
  if (one === undefined || other === undefined) {
    tr.setSelection(Selection.near(tr.doc.resolve(Math.min(tr.mapping.map(head), tr.doc.content.size))));
  } else if (one.node.isAtom) {
    tr.setSelection(NodeSelection.create(tr.doc, one.at));
  } else {
    tr.setSelection(TextSelection.between(tr.doc.resolve(one.at), tr.doc.resolve(other.at)));
  }
}
