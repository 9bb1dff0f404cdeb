// A text that a model wrote in place of blocks, as edits that leave the blocks their ids. Pure.
import type { Node } from "prosemirror-model";

import { kindOf } from "../prose/blocks";
import { idOf, schema } from "../prose/schema";
import { HEADING_TYPES } from "../types";
import type { Part } from "./parts";
import type { EditBody } from "./proposals";

const { prose, list } = schema.nodes;

/** Replacements of texts that the API takes in one request. */
const MOST_IN_PLACE = 10;

/** A block that is rewritten. */
export interface Rewritten {
  readonly id: string;
  readonly node: Node;
  /** Its Markdown. */
  readonly text: string;
  /** Its place in the document. */
  readonly place: number;
}

/**
 * Return the edits that put parts in place of blocks, of which none is empty.
 *
 * What stays the same at the beginning and the end is left alone. Where there are as many parts as
 * blocks, each takes the place of its own: the text of a block of the same kind is edited, so that
 * comments and references find it, and others are written anew.
 */
export function rewritingEdits(blocks: readonly Rewritten[], parts: readonly Part[]): EditBody[] {
  const isSame = (block?: Rewritten, part?: Part): boolean =>
    block !== undefined && block.text === part?.source;
  let start = 0;
  while (isSame(blocks[start], parts[start])) start += 1;
  let [oldEnd, newEnd] = [blocks.length, parts.length];
  while (Math.min(oldEnd, newEnd) > start && isSame(blocks[oldEnd - 1], parts[newEnd - 1])) {
    oldEnd -= 1;
    newEnd -= 1;
  }
  const old = blocks.slice(start, oldEnd);
  const by = parts.slice(start, newEnd);
  if (old.length === by.length) return oneForOne(old, by);
  const place = old[0]?.place ?? blocks[start - 1]!.place + 1;
  return [...old.map(deleted), ...written(by, place)];
}

function oneForOne(blocks: readonly Rewritten[], parts: readonly Part[]): EditBody[] {
  let left = MOST_IN_PLACE;
  // The last first: places of those before stay what they are.
  return blocks
    .map((block, at) => {
      const part = parts[at]!;
      if (block.text === part.source) return [];
      const edits = inPlace(block, part);
      if (edits === undefined || edits.length > left) {
        return [deleted(block), ...written([part], block.place)];
      }
      left -= edits.length;
      return edits;
    })
    .reverse()
    .flat();
}

function deleted({ id }: Rewritten): EditBody {
  return { endpoint: "block/delete", blockId: id };
}

function written(parts: readonly Part[], position: number): EditBody[] {
  const markdown = parts.map(({ source }) => source).join("\n\n");
  return markdown === "" ? [] : [{ endpoint: "doc/write", markdown, position }];
}

/** Return the edits of the text of a block where it is; undefined where it becomes another kind. */
function inPlace({ id, node, text }: Rewritten, part: Part): EditBody[] | undefined {
  if (node.type === list) return inItems(node, text, part);
  const kind = partKind(node);
  // Models leave the signs of a heading out.
  const isHeading = kind === "heading" && part.kind === "paragraph";
  if (node.type !== prose || (kind !== part.kind && !isHeading)) return undefined;
  const [old, by] = [withoutSigns(kind, text), withoutSigns(kind, part.source)];
  return old === by ? [] : [edited(id, old, citedAs(old, by))];
}

/** Return the kind of the part that the text of a block is. */
function partKind(node: Node): Part["kind"] {
  const kind = kindOf(node);
  if (kind === "title" || HEADING_TYPES.includes(kind)) return "heading";
  return kind === "paragraph" || kind === "quote" ? kind : "other";
}

/** Return the edits of the items of a list without lists in them, of which there are as many as before. */
function inItems(node: Node, text: string, { items }: Part): EditBody[] | undefined {
  const isFlat = node.children.every((item) => item.childCount === 1);
  const old = text.split("\n").map((line) => line.replace(/^(?:[-*+]|\d+[.)]|\w+[.)]) /, ""));
  if (!isFlat || old.length !== node.childCount || items.length !== node.childCount) return undefined;
  return node.children.flatMap((item, at) => {
    const [one, by] = [old[at]!, items[at]!];
    return one === by ? [] : [edited(idOf(item), one, citedAs(one, by))];
  });
}

/** Return the Markdown of a block without what is no part of its text. */
function withoutSigns(kind: Part["kind"], markdown: string): string {
  if (kind === "heading") return markdown.replace(/^#+ /, "").replace(/ \{#[^\s}]+\}$/, "");
  return kind === "quote" ? markdown.replace(/^> ?/gm, "") : markdown;
}

export function edited(blockId: string, old: string, by: string): EditBody {
  return { endpoint: "block/text/edit", blockId, edits: [{ old, new: by }] };
}

/** Return Markdown in which numbers in brackets that a text does not have are no citations. */
export function citedAs(old: string, text: string): string {
  return text.replace(/(?<!\\)\[(\d[^[\]]*)\](?!\()/g, (mark, inner: string) =>
    old.includes(mark) ? mark : `\\[${inner}\\]`,
  );
}
