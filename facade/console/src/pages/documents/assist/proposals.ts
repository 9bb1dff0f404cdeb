// What a model wrote, as edits of the API. Pure: nothing here is sent or shown.
import type { Node } from "prosemirror-model";

import type { OpenDocument } from "../document";
import { idOf, schema } from "../prose/schema";
import { toChildren } from "../prose/blocks";
import { assistWords } from "../../../words/documents/assist";
import type { Reference } from "../types";
import type { Source } from "./asking";
import type { Part } from "./parts";
import { citedAs, edited, rewritingEdits } from "./rewriting";
import { type Target, nodesOf, passageAt } from "./target";

export type EditBody = { readonly endpoint: string } & Record<string, unknown>;
type NameOf = (id: string) => string;

const { prose, list, citation } = schema.nodes;

/** Return the text of a target: a passage as it reads, blocks as Markdown. */
export function textOf(document: OpenDocument, target: Target, nameOf: NameOf): string {
  if (target.passage !== undefined) return target.passage.text;
  const states = target.blockIds.map((id) => document.entry(nameOf(id)).state.value);
  return states.map((state) => state?.text ?? "").filter(Boolean).join("\n\n");
}

/** Return the edits that put a text in place of a target, or below it. */
export function suggestedEdits(
  document: OpenDocument,
  doc: Node,
  target: Target,
  nameOf: NameOf,
  isBelow: boolean,
  text: string,
  /** The blocks of the text; undefined where they are one whole. */
  parts: readonly Part[] | undefined,
): EditBody[] {
  const { nodes } = nodesOf(doc, target, nameOf)!;
  const ids = target.blockIds.map(nameOf);
  const order = document.order.value;
  const place = order.indexOf(ids[0]!);
  const written = (position: number): EditBody => ({ endpoint: "doc/write", markdown: text, position });
  const deleted = ids.map((blockId): EditBody => ({ endpoint: "block/delete", blockId }));
  if (isBelow) {
    const isReplaced = target.isEmpty && nodes[0]!.content.size === 0;
    return isReplaced ? [...deleted, written(place)] : [written(place + ids.length)];
  }
  const { passage } = target;
  if (passage !== undefined) {
    const old = passage.before + passage.text + passage.after;
    const by = escaped(passage.before) + citedAs("", text) + escaped(passage.after);
    return [edited(ids[0]!, old, by)];
  }
  if (!nodes.every((node) => node.type === prose || node.type === list)) {
    throw new Error(assistWords.textsOnly);
  }
  const blocks = ids
    .map((id, at) => {
      const markdown = document.entry(id).state.value?.text ?? "";
      return { id, node: nodes[at]!, text: markdown, place: order.indexOf(id) };
    })
    .filter((block) => block.text !== "");
  if (parts === undefined || blocks.length === 0) return [...deleted, written(place)];
  const edits = rewritingEdits(blocks, parts);
  if (edits.length === 0) throw new Error(assistWords.same);
  return edits;
}

/** Return a text as Markdown that reads as the text does. */
function escaped(text: string): string {
  return text.replace(/[!-/:-@[-`{-~]/g, "\\$&");
}

/** Return the edits that add sources to the references, and cite them behind a target. */
export function citingEdits(
  document: OpenDocument,
  doc: Node,
  target: Target,
  nameOf: NameOf,
  sources: readonly Source[],
): EditBody[] {
  const references = [...document.references.value];
  const added: EditBody[] = [];
  const ids = sources.map((source) => {
    const same = references.find((one) => sameAddress(one["url"], source.url));
    if (same !== undefined) return same.id;
    const reference = referenceOf(source, new Set(references.map((one) => one.id)));
    references.push(reference);
    added.push({ endpoint: "reference/add", reference });
    return reference.id;
  });
  return [...added, cited(doc, target, nameOf, ids)];
}

function cited(doc: Node, target: Target, nameOf: NameOf, ids: readonly string[]): EditBody {
  const block = nodesOf(doc, target, nameOf)!;
  const last = block.nodes.at(-1)!;
  if (last.type !== prose && last.type !== list) throw new Error(assistWords.textsOnly);
  const start = block.to - last.nodeSize;
  // Behind the passage, or all that is in the block.
  const at = (passageAt(doc, target, nameOf)?.to ?? endOf(last, start)) - start;
  const cite = ids.length === 1 ? ids[0] : ids.map((id) => ({ id }));
  const made = withCitation(last, at - 1, citation!.create({ cite }));
  return { endpoint: "block/text/replace", blockId: idOf(last), children: toChildren(made) };
}

/** Return the position behind the last text of a block. */
function endOf(node: Node, start: number): number {
  let depth = 1;
  for (let inner = node; inner.lastChild !== null && !inner.inlineContent; inner = inner.lastChild) depth += 1;
  return start + node.nodeSize - depth;
}

function withCitation(node: Node, at: number, made: Node): Node {
  if (node.inlineContent) {
    const { content } = node;
    return node.copy(content.cut(0, at).addToEnd(made).append(content.cut(at)));
  }
  let [index, offset] = [0, 0];
  while (offset + node.child(index).nodeSize < at) offset += node.child(index++).nodeSize;
  const child = node.child(index);
  return node.copy(node.content.replaceChild(index, withCitation(child, at - offset - 1, made)));
}

function sameAddress(one: unknown, other: string): boolean {
  const plain = (url: string) => url.replace(/\/$/, "");
  return typeof one === "string" && plain(one) === plain(other);
}

/** Return the reference of a page, with an id that says where it is. */
function referenceOf({ url, title }: Source, taken: ReadonlySet<string>): Reference {
  const { hostname } = new URL(url);
  const base = hostname.replace(/^www\./, "").replace(/[^A-Za-z0-9]+/g, "-");
  let id = base;
  for (let number = 2; taken.has(id); number += 1) id = `${base}-${number}`;
  return { id, type: "webpage", title, url };
}
