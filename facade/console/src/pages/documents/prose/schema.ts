// The document as ProseMirror edits it. Texts and lists are edited in place; tables, figures and other
// blocks are atoms, which show and change themselves.
import { type DOMOutputSpec, type Mark, type Node, Schema } from "prosemirror-model";

import { safeAddress } from "../../../parts/links";
import type { CitationItem, Leaf, NewBlock, Style } from "../types";

/** What a node keeps of its block beside id, type and children. */
export type Rest = Omit<NewBlock, "id" | "type" | "children">;

const HEADINGS = ["h1", "h2", "h3", "h4", "h5", "h6"];

/** Return attributes that are read back from what was copied. */
function kept(element: HTMLElement): { kind: string } {
  return { kind: element.dataset["kind"] ?? "paragraph" };
}

function json<T>(text: string | undefined): T | null {
  return text === undefined ? null : (JSON.parse(text) as T);
}

export const schema = new Schema({
  nodes: {
    doc: { content: "block*" },
    /** A block of text: paragraph, title, heading, quotation, abstract or label. */
    prose: {
      group: "block",
      content: "inline*",
      attrs: { id: { default: "" }, kind: { default: "paragraph" } },
      // A heading that is pasted into an empty text stays one.
      definingForContent: true,
      parseDOM: [
        { tag: "p", getAttrs: kept },
        ...HEADINGS.map((kind) => ({ tag: kind, attrs: { kind } })),
      ],
      toDOM: (node): DOMOutputSpec =>
        HEADINGS.includes(node.attrs["kind"] as string)
          ? [node.attrs["kind"] as string, 0]
          : ["p", { "data-kind": node.attrs["kind"] as string }, 0],
    },
    /** A list, or one in an item. */
    list: {
      group: "block",
      content: "item+",
      attrs: { id: { default: "" }, rest: { default: null as Rest | null } },
      parseDOM: [
        { tag: "ul" },
        {
          tag: "ol",
          getAttrs: (element) => ({
            rest: { style: { orderType: element.dataset["order"] ?? "decimal" } },
          }),
        },
      ],
      toDOM: (node): DOMOutputSpec => {
        const order = orderOf(node);
        return order === "disc" ? ["ul", 0] : ["ol", { "data-order": order }, 0];
      },
    },
    item: {
      content: "line list?",
      attrs: { id: { default: "" }, rest: { default: null as Rest | null } },
      parseDOM: [{ tag: "li" }],
      toDOM: () => ["li", 0],
      defining: true,
    },
    /** The text of an item. */
    line: {
      content: "inline*",
      toDOM: () => ["div", 0],
    },
    /**
     * A block that is no text. A new one begins with the content of the block `copyOf`, or with that
     * of `made`.
     */
    thing: {
      group: "block",
      atom: true,
      attrs: {
        id: { default: "" },
        kind: { default: "table" },
        copyOf: { default: "" },
        made: { default: null as NewBlock | null },
      },
      parseDOM: [
        {
          tag: "div[data-thing]",
          getAttrs: ({ dataset }) => ({
            kind: dataset["thing"],
            copyOf: dataset["copy"] ?? "",
            made: json<NewBlock>(dataset["made"]),
          }),
        },
      ],
      toDOM: ({ attrs }): DOMOutputSpec => [
        "div",
        { "data-thing": attrs["kind"] as string, "data-copy": attrs["copyOf"] || attrs["id"] },
      ],
    },
    text: { group: "inline" },
    line_break: {
      group: "inline",
      inline: true,
      selectable: false,
      linebreakReplacement: true,
      parseDOM: [{ tag: "br" }],
      toDOM: () => ["br"],
    },
    formula: {
      group: "inline",
      inline: true,
      atom: true,
      attrs: { tex: { default: "" }, isDisplayed: { default: false } },
      parseDOM: [
        {
          tag: "span[data-tex]",
          getAttrs: ({ dataset }) => ({
            tex: dataset["tex"],
            isDisplayed: dataset["displayed"] === "true",
          }),
        },
      ],
      toDOM: ({ attrs }): DOMOutputSpec => [
        "span",
        { "data-tex": attrs["tex"] as string, "data-displayed": String(attrs["isDisplayed"]) },
      ],
      leafText: (node) => node.attrs["tex"] as string,
    },
    /** A note or a reference to a block, as the API has it. */
    object: {
      group: "inline",
      inline: true,
      atom: true,
      attrs: { leaf: { default: null as Leaf | null } },
      parseDOM: [
        {
          tag: "span[data-leaf]",
          getAttrs: ({ dataset }) => ({ leaf: json<Leaf>(dataset["leaf"]) }),
        },
      ],
      toDOM: ({ attrs }): DOMOutputSpec => ["span", { "data-leaf": JSON.stringify(attrs["leaf"]) }],
    },
    /** A citation beside no text of its own. */
    citation: {
      group: "inline",
      inline: true,
      atom: true,
      attrs: { cite: { default: null as Leaf["cite"] | null } },
      parseDOM: [
        {
          tag: "span[data-citation]",
          getAttrs: ({ dataset }) => ({ cite: json<CitationItem[]>(dataset["citation"]) }),
        },
      ],
      toDOM: ({ attrs }): DOMOutputSpec => [
        "span",
        { "data-citation": JSON.stringify(attrs["cite"]) },
      ],
    },
  },
  // The first is the outermost: a citation is shown once after all that it covers.
  marks: {
    cite: {
      attrs: { cite: {} },
      inclusive: false,
      parseDOM: [
        {
          tag: "span[data-cite]",
          getAttrs: ({ dataset }) => ({ cite: json<CitationItem[]>(dataset["cite"]) }),
        },
      ],
      toDOM: ({ attrs }): DOMOutputSpec => [
        "span",
        { "data-cite": JSON.stringify(attrs["cite"]) },
        0,
      ],
    },
    color: {
      attrs: { color: {} },
      parseDOM: [
        { tag: "span[data-color]", getAttrs: ({ dataset }) => ({ color: dataset["color"] }) },
      ],
      toDOM: ({ attrs }): DOMOutputSpec => [
        "span",
        { class: "inked", "data-color": attrs["color"] as string },
        0,
      ],
    },
    link: {
      attrs: { url: {} },
      inclusive: false,
      parseDOM: [
        {
          tag: "a[href]",
          getAttrs: (element) => {
            const url = element.dataset["url"] ?? safeAddress(element.getAttribute("href") ?? "");
            return url === undefined ? false : { url };
          },
        },
        { tag: "span[data-url]", getAttrs: ({ dataset }) => ({ url: dataset["url"] }) },
      ],
      toDOM: linkElement,
    },
    strong: {
      parseDOM: [{ tag: "strong" }, { tag: "b" }],
      toDOM: () => ["strong", 0],
    },
    em: { parseDOM: [{ tag: "em" }, { tag: "i" }], toDOM: () => ["em", 0] },
    underline: {
      excludes: "underline strike",
      parseDOM: [{ tag: "u" }],
      toDOM: () => ["u", 0],
    },
    strike: {
      excludes: "underline strike",
      parseDOM: [{ tag: "s" }, { tag: "del" }, { tag: "strike" }],
      toDOM: () => ["s", 0],
    },
    sup: { excludes: "sup sub", parseDOM: [{ tag: "sup" }], toDOM: () => ["sup", 0] },
    sub: { excludes: "sup sub", parseDOM: [{ tag: "sub" }], toDOM: () => ["sub", 0] },
    code: {
      inclusive: false,
      parseDOM: [{ tag: "code" }, { tag: "kbd" }, { tag: "samp" }],
      toDOM: () => ["code", 0],
    },
  },
});

/** The element of a link; one that leads nowhere safe is text. */
function linkElement({ attrs }: Mark): DOMOutputSpec {
  const url = attrs["url"] as string;
  if (url.startsWith("#")) {
    return ["a", { class: "cite", href: `#block-${url.slice(1)}`, "data-url": url }, 0];
  }
  const href = safeAddress(url);
  if (href === undefined) return ["span", { "data-url": url }, 0];
  return ["a", { href, target: "_blank", rel: "noopener noreferrer", "data-url": url }, 0];
}

/** Return how the items of a list are marked. */
export function orderOf(list: Node): string {
  const { style } = (list.attrs["rest"] as Rest | null) ?? {};
  return String((style as Style | undefined)?.["orderType"] ?? "disc");
}

/** Return the id of a block's node. */
export function idOf(node: Node): string {
  return node.attrs["id"] as string;
}
