// Blocks of the API as nodes of the editor, and back.
import { Fragment, type Mark, type Node } from "prosemirror-model";

import {
  type Block,
  type Leaf,
  type NewBlock,
  TEXT_TYPES,
  elementsOf,
  isLeaf,
  isObject,
  isSameCite,
  leavesOf,
} from "../types";
import { type Rest, idOf, schema } from "./schema";

const { prose, list, item, line, thing, line_break, formula, object, citation } = schema.nodes;
const { marks } = schema;

/** Ids of nodes that the server has not named yet. */
const NEW = "new-";
let lastId = 0;

export function newId(): string {
  lastId += 1;
  return `${NEW}${Date.now().toString(36)}-${lastId}`;
}

export function isNew(id: string): boolean {
  return id.startsWith(NEW) || id === "";
}

/** Return the node of a block. */
export function toNode(block: Block): Node {
  const { id } = block;
  if (block.type === "list") return toList(block);
  if (TEXT_TYPES.includes(block.type) && elementsOf(block).length === 0) {
    return prose!.create({ id, kind: block.type }, toInline(leavesOf(block)));
  }
  return thing!.create({ id, kind: block.type });
}

function toList(block: Block): Node {
  const items = elementsOf(block).map((one) => {
    const inner = elementsOf(one).slice(0, 1).map(toList);
    const text = line!.create(null, toInline(leavesOf(one)));
    return item!.create({ id: one.id, rest: restOf(one) }, [text, ...inner]);
  });
  // One without items has one to write into.
  if (items.length === 0) items.push(item!.create({ id: newId() }, line!.create()));
  return list!.create({ id: block.id, rest: restOf(block) }, items);
}

function restOf({ id: _, type: __, children: ___, ...rest }: Block): Rest | null {
  return Object.keys(rest).length > 0 ? (rest as Rest) : null;
}

/** Return leaves as the content of a text. */
export function toInline(leaves: Leaf[]): Fragment {
  return Fragment.from(
    leaves.flatMap((leaf, place) => {
      // A note interrupts no run of one citation.
      const next = leaves[place + 1];
      const isWithin =
        leaf.type === "note" && next?.cite !== undefined && isSameCite(leaves[place - 1] ?? leaf, next);
      return nodesOf(leaf, isWithin ? next.cite : undefined);
    }),
  );
}

function nodesOf(leaf: Leaf, around: Leaf["cite"]): Node[] {
  if (isObject(leaf)) {
    const within = around === undefined ? [] : [marks["cite"]!.create({ cite: around })];
    return [object!.create({ leaf }, null, within)];
  }
  if (leaf.text === "" && leaf.cite !== undefined) return [citation!.create({ cite: leaf.cite })];
  const own = marksOf(leaf);
  if (leaf.type === "latex") {
    const attrs = { tex: leaf.text, isDisplayed: leaf.form === "display" };
    return [formula!.create(attrs, null, own)];
  }
  return leaf.text.split("\n").flatMap((part, place) => [
    ...(place > 0 ? [line_break!.create(null, null, own)] : []),
    ...(part === "" ? [] : [schema.text(part, own)]),
  ]);
}

function marksOf(leaf: Leaf): Mark[] {
  const made: Mark[] = [];
  if (leaf.cite !== undefined) made.push(marks["cite"]!.create({ cite: leaf.cite }));
  if (leaf.color !== undefined) made.push(marks["color"]!.create({ color: leaf.color }));
  if (leaf.type === "url") made.push(marks["link"]!.create({ url: leaf.url ?? "" }));
  if (leaf.bold) made.push(marks["strong"]!.create());
  if (leaf.italic) made.push(marks["em"]!.create());
  if (leaf.textDecoration === "underline") made.push(marks["underline"]!.create());
  if (leaf.textDecoration === "line-through") made.push(marks["strike"]!.create());
  if (leaf.script === "super") made.push(marks["sup"]!.create());
  if (leaf.script === "sub") made.push(marks["sub"]!.create());
  if (leaf.type === "inlinecode") made.push(marks["code"]!.create());
  return made;
}

/** Return the leaves of a text. */
export function toLeaves(text: Node): Leaf[] {
  const leaves: Leaf[] = [];
  text.forEach((node) => {
    const leaf = leafOf(node);
    const last = leaves.at(-1);
    if (last !== undefined && isSameButText(last, leaf)) last.text += leaf.text;
    else leaves.push(leaf);
  });
  return leaves;
}

function leafOf(node: Node): Leaf {
  if (node.type === object) return node.attrs["leaf"] as Leaf;
  if (node.type === citation) return { text: "", cite: node.attrs["cite"] as Leaf["cite"] };
  const made: Leaf = { text: node.type === line_break ? "\n" : (node.text ?? "") };
  if (node.type === formula) {
    made.type = "latex";
    made.text = node.attrs["tex"] as string;
    if (node.attrs["isDisplayed"]) made.form = "display";
  }
  for (const mark of node.marks) {
    // A formula is neither code nor a link.
    if (node.type === formula && AS_TYPE.has(mark.type.name)) continue;
    Object.assign(made, MADE_BY[mark.type.name]?.(mark));
  }
  return made;
}

/** Marks that are the type of a leaf. */
const AS_TYPE = new Set(["code", "link"]);

const MADE_BY: Record<string, (mark: Mark) => Partial<Leaf>> = {
  cite: ({ attrs }) => ({ cite: attrs["cite"] as Leaf["cite"] }),
  color: ({ attrs }) => ({ color: attrs["color"] as string }),
  link: ({ attrs }) => ({ type: "url", url: attrs["url"] as string }),
  strong: () => ({ bold: true }),
  em: () => ({ italic: true }),
  underline: () => ({ textDecoration: "underline" }),
  strike: () => ({ textDecoration: "line-through" }),
  sup: () => ({ script: "super" }),
  sub: () => ({ script: "sub" }),
  code: () => ({ type: "inlinecode" }),
};

/** Return whether two leaves have the same marks, and are one when they stand side by side. */
function isSameButText(one: Leaf, other: Leaf): boolean {
  // Two formulas are not one, nor are two notes; an empty leaf is a citation by itself.
  if (isObject(one) || one.type === "latex" || one.text === "" || other.text === "") return false;
  return JSON.stringify({ ...one, text: "" }) === JSON.stringify({ ...other, text: "" });
}

/** Return the children of a text's or a list's block; ids that the server has not made are left out. */
export function toChildren(node: Node): (Leaf | NewBlock)[] {
  if (node.type !== list) return toLeaves(node);
  return node.children.map((one) => {
    const [text, inner] = one.children;
    const children: (Leaf | NewBlock)[] = toLeaves(text!);
    if (inner !== undefined) children.push(named(inner, "list", toChildren(inner)));
    return named(one, "list-item", children);
  });
}

function named(node: Node, type: string, children: (Leaf | NewBlock)[]): NewBlock {
  const id = idOf(node);
  const rest = (node.attrs["rest"] as Rest | null) ?? {};
  return { ...rest, ...(isNew(id) ? {} : { id }), type, children };
}

/** Return the type of block that a node is. */
export function kindOf(node: Node): string {
  return node.type === list ? "list" : (node.attrs["kind"] as string);
}

/** Return a block to insert for a text or a list, as a block of its own: with none of its ids. */
export function toNewBlock(node: Node): NewBlock {
  const rest = (node.attrs["rest"] as Rest | null | undefined) ?? {};
  return withoutIds({ ...rest, type: kindOf(node), children: toChildren(node) });
}

/** Return a block to insert that is a copy of one; a label stays with the original. */
export function copyOf(block: Block): NewBlock {
  const { label: _, ...rest } = block;
  return withoutIds(rest);
}

function withoutIds({ id: _, children, ...rest }: NewBlock): NewBlock {
  if (children === undefined) return rest as NewBlock;
  const inner = children.map((one) => (isLeaf(one) ? one : withoutIds(one)));
  return { ...rest, children: inner } as NewBlock;
}

/** Return a node, and the nodes in it, with other ids. */
export function renamed(node: Node, ids: ReadonlyMap<string, string>): Node {
  if (node.isText || node.isLeaf || node.type === line) {
    return ids.has(idOf(node)) ? node.type.create({ ...node.attrs, id: ids.get(idOf(node)) }) : node;
  }
  const isChanged = ids.has(idOf(node));
  let content = node.content;
  if (!node.inlineContent) {
    const inner = node.children.map((child) => renamed(child, ids));
    if (inner.some((child, place) => child !== node.child(place))) content = Fragment.from(inner);
  }
  if (!isChanged && content === node.content) return node;
  const id = ids.get(idOf(node)) ?? idOf(node);
  return node.type.create({ ...node.attrs, id }, content, node.marks);
}

/** Return the names that the server gave to what it was sent without: by the ids that it had here. */
export function renamings(sent: Node, stored: Node): Map<string, string> {
  const names = new Map<string, string>();
  const [here, there] = [idsOf(sent), idsOf(stored)];
  if (here.length !== there.length) return names;
  here.forEach((id, place) => {
    if (isNew(id)) names.set(id, there[place]!);
  });
  return names;
}

function idsOf(node: Node): string[] {
  const ids = [idOf(node)];
  node.descendants((inner) => {
    if (inner.type === list || inner.type === item) ids.push(idOf(inner));
    return !inner.inlineContent;
  });
  return ids;
}
