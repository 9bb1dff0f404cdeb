// What was typed since the server's last known state, as edits of the API, and carried over to a newer
// state. Pure: nothing here is sent or shown.
import type { Node } from "prosemirror-model";

import type { Block, NewBlock } from "../types";
import { copyOf, kindOf, toChildren, toNewBlock } from "./blocks";
import { idOf, schema } from "./schema";

const { thing } = schema.nodes;

/** The blocks of a document: their order, and each as a node. */
export interface Blocks {
  readonly order: readonly string[];
  readonly nodes: ReadonlyMap<string, Node>;
}

export function blocksOf(nodes: readonly Node[]): Blocks {
  return { order: nodes.map(idOf), nodes: new Map(nodes.map((node) => [idOf(node), node])) };
}

/** An edit of `edits/apply`, and the ids here of the blocks that it inserts. */
export interface Change {
  readonly body: { readonly endpoint: string } & Record<string, unknown>;
  readonly inserted?: readonly string[];
}

/** Return the edits that make `mine` of `base`; `original` finds the block that a copy is of. */
export function changesBetween(
  base: Blocks,
  mine: Blocks,
  original: (id: string) => Block | undefined,
): Change[] {
  const changes: Change[] = [];
  // The order as it is after each edit.
  const order: string[] = [];
  for (const id of base.order) {
    if (mine.nodes.has(id)) order.push(id);
    else changes.push({ body: { endpoint: "block/delete", blockId: id } });
  }
  let run: { inserted: string[]; blocks: NewBlock[] } | undefined;
  mine.order.forEach((id, place) => {
    if (base.nodes.has(id)) {
      run = undefined;
      if (order[place] === id) return;
      order.splice(order.indexOf(id), 1);
      order.splice(place, 0, id);
      changes.push({ body: { endpoint: "block/move", blockId: id, path: [place] } });
      return;
    }
    order.splice(place, 0, id);
    const made = newBlock(mine.nodes.get(id)!, original);
    if (run === undefined) {
      run = { inserted: [], blocks: [] };
      const { inserted, blocks } = run;
      changes.push({ body: { endpoint: "block/insert", path: [place], blocks }, inserted });
    }
    run.inserted.push(id);
    run.blocks.push(made);
  });
  for (const [id, node] of mine.nodes) {
    const before = base.nodes.get(id);
    if (before === undefined || before.eq(node) || node.type === thing) continue;
    if (kindOf(before) !== kindOf(node)) {
      changes.push({ body: { endpoint: "block/convert", blockIds: [id], type: kindOf(node) } });
    }
    if (!before.content.eq(node.content)) {
      const children = toChildren(node);
      changes.push({ body: { endpoint: "block/text/replace", blockId: id, children } });
    }
  }
  return changes;
}

function newBlock(node: Node, original: (id: string) => Block | undefined): NewBlock {
  if (node.type !== thing) return toNewBlock(node);
  const made = node.attrs["made"] as NewBlock | null;
  if (made !== null) return made;
  const block = original(node.attrs["copyOf"] as string);
  return block === undefined ? { type: "paragraph", children: [] } : copyOf(block);
}

/** Return what the first edits of a list make of `base`, when the others are still to be made. */
export function applied(base: Blocks, changes: readonly Change[], mine: Blocks): Blocks {
  const order = [...base.order];
  const nodes = new Map(base.nodes);
  for (const { body, inserted = [] } of changes) {
    const id = (body["blockId"] ?? (body["blockIds"] as string[] | undefined)?.[0] ?? "") as string;
    const [place] = (body["path"] ?? [0]) as number[];
    if (body.endpoint === "block/insert") order.splice(place!, 0, ...inserted);
    if (["block/delete", "block/move"].includes(body.endpoint)) order.splice(order.indexOf(id), 1);
    if (body.endpoint === "block/move") order.splice(place!, 0, id);
    if (body.endpoint === "block/delete") nodes.delete(id);
    else for (const one of [id, ...inserted]) if (mine.nodes.has(one)) nodes.set(one, mine.nodes.get(one)!);
  }
  return { order, nodes };
}

/** What becomes of `mine` when others have made `theirs` of `base`. */
export interface Rebased {
  readonly nodes: readonly Node[];
  /** Blocks that both have changed at the same place, or that they deleted and I changed. */
  readonly conflicts: readonly string[];
}

/** Carry what was changed in `mine` since `base` over to `theirs`; what is held stays as it is. */
export function rebase(
  base: Blocks,
  mine: Blocks,
  theirs: Blocks,
  held: ReadonlySet<string> = new Set(),
): Rebased {
  const conflicts: string[] = [];
  const nodes: Node[] = [];
  /** Blocks that they do not have, by the block after which they stand. */
  const kept = keptBlocks(base, mine, theirs, conflicts);
  nodes.push(...(kept.get("") ?? []));
  for (const id of theirs.order) {
    const [before, own, their] = [base.nodes.get(id), mine.nodes.get(id), theirs.nodes.get(id)!];
    if (own === undefined) {
      // Deleted here: it stays so, unless they have changed it meanwhile.
      if (before === undefined || !before.eq(their)) nodes.push(their);
    } else {
      const merged = held.has(id) ? own : merge(before ?? their, own, their);
      if (merged === undefined) conflicts.push(id);
      nodes.push(merged ?? own);
    }
    nodes.push(...(kept.get(id) ?? []));
  }
  return { nodes, conflicts };
}

function keptBlocks(
  base: Blocks,
  mine: Blocks,
  theirs: Blocks,
  conflicts: string[],
): Map<string, Node[]> {
  const kept = new Map<string, Node[]>();
  let anchor = "";
  for (const id of mine.order) {
    const [node, before] = [mine.nodes.get(id)!, base.nodes.get(id)];
    if (theirs.nodes.has(id)) {
      anchor = id;
    } else if (before === undefined || !before.eq(node)) {
      if (before !== undefined) conflicts.push(id);
      kept.set(anchor, [...(kept.get(anchor) ?? []), node]);
    }
  }
  return kept;
}

/** Return a block with both changes of it; undefined where they meet. */
export function merge(base: Node, mine: Node, theirs: Node): Node | undefined {
  if (mine.eq(base) || mine.eq(theirs)) return theirs;
  if (theirs.eq(base)) return mine;
  if (!base.sameMarkup(mine) || !base.sameMarkup(theirs)) return undefined;
  const [own, other] = [changed(base, mine), changed(base, theirs)];
  const isAfter = other.start > own.end;
  const isSamePoint = other.start === other.end && own.start === own.end && own.start === other.start;
  if (!isAfter && other.end >= own.start && !isSamePoint) return undefined;
  const shift = isAfter ? own.newEnd - own.end : 0;
  try {
    const part = theirs.slice(other.start, other.newEnd);
    return mine.replace(other.start + shift, other.end + shift, part);
  } catch {
    return undefined;
  }
}

/** Return where two nodes differ: in the first from `start` to `end`, in the other to `newEnd`. */
export function changed(one: Node, other: Node): { start: number; end: number; newEnd: number } {
  const start = one.content.findDiffStart(other.content) ?? one.content.size;
  const { a, b } = one.content.findDiffEnd(other.content) ?? { a: start, b: start };
  const overlap = Math.max(0, start - Math.min(a, b));
  return { start, end: a + overlap, newEnd: b + overlap };
}

/** Return where a position in one state of a block is in another state of it. */
export function mapped(offset: number, one: Node, other: Node): number {
  if (one === other || one.content.eq(other.content)) return offset;
  const { start, end, newEnd } = changed(one, other);
  if (offset <= start) return offset;
  return offset >= end ? offset + newEnd - end : Math.min(offset, newEnd);
}
