// HTML of a clipboard as elements: only those that documents have, without scripts, styles or addresses of
// pictures. Loaded with the first paste.
import { Parser } from "htmlparser2";

/** Elements that are taken over, and the names that they get. */
const TAKEN: Record<string, string> = {
  ...Object.fromEntries(
    ["p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "br", "a"].map((name) => [name, name]),
  ),
  ...{ b: "strong", strong: "strong", i: "em", em: "em", u: "u", ins: "u", s: "s", del: "s" },
  ...{ strike: "s", sup: "sup", sub: "sub", code: "code", kbd: "code", samp: "code" },
  ...{ div: "div", section: "div", article: "div", pre: "p", blockquote: "div", span: "span" },
  ...{ table: "table", tr: "tr", td: "td", th: "td", caption: "p" },
};
/** Elements whose text is no part of what was copied. */
const SKIPPED = new Set(["script", "style", "head", "title", "template", "noscript", "svg", "math"]);
const EMPTY = new Set(["br", "img", "hr", "meta", "link", "input", "col", "wbr"]);
/** Attributes by which this page reads its own texts back. */
const OWN = /^data-(kind|order|thing|copy|tex|displayed|leaf|citation|cite|color|url)$/;
const SPANS = /^(colspan|rowspan)$/;
const BLOCKS = new Set(["p", "div", "table", "tr", "td", "h1", "h2", "h3", "h4", "h5", "h6"]);
/** What is a line of a cell. */
const LINES = new Set([...BLOCKS, "ul", "ol", "li"]);
const LARGEST = 5_000_000;

/** Return the elements of HTML below a new one. Nothing of them is loaded or run. */
export function elementsOf(html: string): HTMLElement {
  const root = document.createElement("div");
  const reader = new Reader(root);
  const parser = new Parser(
    {
      onopentag: (name, attributes) => reader.open(name, attributes),
      ontext: (text) => reader.text(text),
      onclosetag: (name) => reader.close(name),
    },
    { decodeEntities: true, lowerCaseTags: true },
  );
  parser.write(html.slice(0, LARGEST));
  parser.end();
  return root;
}

class Reader {
  /** What is open: the element that each adds to; none for what is left out. */
  readonly #open: { name: string; into: HTMLElement | undefined }[];
  #quotes = 0;
  #items = 0;
  #cells = 0;
  /** The lists of Word, which are paragraphs: one for each level. */
  #lists: HTMLElement[] = [];

  constructor(readonly root: HTMLElement) {
    this.#open = [{ name: "", into: root }];
  }

  open(name: string, attributes: Record<string, string>): void {
    const into = this.#open.at(-1)!.into;
    const style = attributes["style"] ?? "";
    if (name === "blockquote") this.#quotes += 1;
    if (name === "li") this.#items += 1;
    // The sign of an item of Word is text.
    const isLeftOut = SKIPPED.has(name) || /mso-list:\s*ignore/i.test(style) || /display:\s*none/i.test(style);
    const taken = this.#taken(name, style, into);
    if (name === "td" || name === "th") this.#cells += 1;
    let inner = isLeftOut ? undefined : into;
    if (inner !== undefined && taken !== undefined) {
      inner = this.#element(taken, attributes, style, inner);
    }
    if (!EMPTY.has(name)) this.#open.push({ name, into: inner });
  }

  text(text: string): void {
    this.#open.at(-1)!.into?.append(text);
  }

  close(name: string): void {
    if (EMPTY.has(name)) return;
    if (name === "blockquote") this.#quotes -= 1;
    if (name === "li") this.#items -= 1;
    if (name === "td" || name === "th") this.#cells -= 1;
    const at = this.#open.findLastIndex((one) => one.name === name);
    if (at > 0) this.#open.length = at;
  }

  #taken(name: string, style: string, into: HTMLElement | undefined): string | undefined {
    const taken = TAKEN[name];
    if (this.#cells > 0 && LINES.has(taken ?? "")) {
      if (into?.textContent.trim()) into.append(document.createElement("br"));
      return undefined;
    }
    // An item has one text.
    if (this.#items > 0 && BLOCKS.has(taken ?? "")) return undefined;
    // Google Docs puts all of it into a bold element that is not bold.
    return taken === "strong" && /font-weight:\s*normal/i.test(style) ? "span" : taken;
  }

  #element(
    name: string,
    attributes: Record<string, string>,
    style: string,
    into: HTMLElement,
  ): HTMLElement {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      const isTaken = OWN.test(key) || (name === "td" && SPANS.test(key));
      if (isTaken || (name === "a" && key === "href")) element.setAttribute(key, value);
    }
    if (name === "p" && this.#quotes > 0) element.dataset["kind"] ??= "quote";
    const level = /mso-list:\s*\S+\s+level(\d+)/i.exec(style)?.[1];
    if (name === "p" && level !== undefined) return this.#itemOfWord(Number(level), into, attributes);
    if (["p", "h1", "h2", "h3", "ul", "ol"].includes(name)) this.#lists = [];
    into.append(element);
    return withStyle(element, style, name);
  }

  #itemOfWord(level: number, into: HTMLElement, attributes: Record<string, string>): HTMLElement {
    const depth = Math.min(level, this.#lists.length + 1, 4);
    this.#lists.length = Math.min(this.#lists.length, depth);
    if (this.#lists.length < depth) {
      const list = document.createElement(/number/i.test(attributes["class"] ?? "") ? "ol" : "ul");
      (this.#lists.at(-1)?.lastElementChild ?? into).append(list);
      this.#lists.push(list);
    }
    const item = document.createElement("li");
    this.#lists.at(-1)!.append(item);
    return item;
  }
}

/** Return the element to add to within one that a style makes bold or italic. */
function withStyle(element: HTMLElement, style: string, name: string): HTMLElement {
  let inner = element;
  if (name !== "span") return inner;
  for (const [pattern, tag] of STYLES) {
    if (!pattern.test(style)) continue;
    const made = document.createElement(tag);
    inner.append(made);
    inner = made;
  }
  return inner;
}

const STYLES: [RegExp, string][] = [
  [/font-weight:\s*(bold|[6-9]00)/i, "strong"],
  [/font-style:\s*italic/i, "em"],
  [/vertical-align:\s*super/i, "sup"],
  [/vertical-align:\s*sub/i, "sub"],
];
