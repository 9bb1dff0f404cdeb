// Text with marks, edited in place. The browser edits elements that were made of leaves; leaves are
// read from them again. Nothing is parsed: what is pasted or dropped comes as plain text.
import { useLayoutEffect, useRef } from "preact/hooks";

import { type Leaf, isObject, isSameCite } from "../types";

type Marks = Omit<Leaf, "text">;

const TAGS = { bold: "b", italic: "i" } as const;

/** Shows an editable text; `holder.element` is what `readLeaves` takes. */
export function RichText({
  leaves,
  label,
  holder,
  isFirst = false,
}: {
  leaves: Leaf[];
  label: string;
  holder: { element: HTMLElement | null };
  /** Whether it takes the focus when it appears. */
  isFirst?: boolean;
}) {
  const element = useRef<HTMLDivElement>(null);
  // Before the next key is handled, so that none is lost.
  useLayoutEffect(() => {
    const root = element.current;
    if (root === null) return;
    root.replaceChildren(...leaves.map(toNode));
    holder.element = root;
    if (isFirst) {
      root.focus();
      getSelection()?.selectAllChildren(root);
      getSelection()?.collapseToEnd();
    }
  }, []);
  return (
    <div
      ref={element}
      class="rich"
      contentEditable
      role="textbox"
      aria-multiline="true"
      aria-label={label}
      onKeyDown={(event) => {
        if (event.key !== "Enter" || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        document.execCommand("insertLineBreak");
      }}
      onPaste={(event) => {
        event.preventDefault();
        insertPlain(event.clipboardData);
      }}
      onDrop={(event) => {
        event.preventDefault();
        insertPlain(event.dataTransfer);
      }}
    />
  );
}

function insertPlain(transfer: DataTransfer | null): void {
  const lines = (transfer?.getData("text/plain") ?? "").replace(/\r\n?/g, "\n").split("\n");
  lines.forEach((line, place) => {
    if (place > 0) document.execCommand("insertLineBreak");
    if (line !== "") document.execCommand("insertText", false, line);
  });
}

export function toNode(leaf: Leaf): Node {
  if (isObject(leaf)) return toObject(leaf);
  const { text, ...marks } = leaf;
  let node: Node = document.createElement("span");
  text.split("\n").forEach((line, place) => {
    if (place > 0) node.appendChild(document.createElement("br"));
    node.appendChild(document.createTextNode(line));
  });
  if (text.endsWith("\n")) node.appendChild(document.createElement("br"));
  for (const name of ["bold", "italic"] as const) {
    if (marks[name]) node = within(TAGS[name], node);
  }
  if (marks.textDecoration === "underline") node = within("u", node);
  if (marks.textDecoration === "line-through") node = within("s", node);
  if (marks.script === "super") node = within("sup", node);
  if (marks.script === "sub") node = within("sub", node);
  if (marks.type !== undefined && marks.type !== "default") {
    node = mark(node, { type: marks.type, url: marks.url, form: marks.form });
  }
  if (marks.color !== undefined) node = mark(node, { color: marks.color });
  if (marks.cite !== undefined) node = mark(node, { cite: marks.cite });
  return node;
}

/** Return a note or a reference to a block, which stays as it is, or is deleted as a whole. */
function toObject(leaf: Leaf): HTMLElement {
  const element = document.createElement("span");
  element.contentEditable = "false";
  element.className = "object";
  element.dataset["leaf"] = JSON.stringify(leaf);
  const note = (leaf.children ?? []).map((child) => child.text).join("");
  element.textContent = leaf.type === "note" ? `[note: ${note}]` : `→ ${leaf.ref ?? ""}`;
  return element;
}

function within(tag: string, node: Node): HTMLElement {
  const element = document.createElement(tag);
  element.append(node);
  return element;
}

/** Return an element that puts marks on what is in it. */
export function mark(node: Node, marks: Marks): HTMLElement {
  const element = within("span", node);
  if (marks.type !== undefined) element.dataset["type"] = marks.type;
  if (marks.url !== undefined) element.dataset["url"] = marks.url;
  if (marks.form !== undefined) element.dataset["form"] = marks.form;
  if (marks.cite !== undefined) element.dataset["cite"] = JSON.stringify(marks.cite);
  if (marks.color !== undefined) {
    element.dataset["color"] = marks.color;
    element.className = "inked";
    element.style.setProperty("--ink", marks.color);
  }
  return element;
}

/** Return the leaves that an edited text is made of. */
export function readLeaves(root: HTMLElement | null): Leaf[] {
  const leaves: Leaf[] = [];
  if (root !== null) read(root, {}, leaves);
  // At its end the browser needs one more line break than the text has.
  const last = leaves.at(-1);
  if (last?.text.endsWith("\n")) last.text = last.text.slice(0, -1);
  return leaves.filter((leaf) => leaf.text !== "" || leaf.cite !== undefined || isObject(leaf));
}

function read(parent: Node, marks: Marks, leaves: Leaf[]): void {
  for (const node of parent.childNodes) {
    const object = node instanceof HTMLElement ? node.dataset["leaf"] : undefined;
    if (object !== undefined) leaves.push(JSON.parse(object) as Leaf);
    else if (node instanceof HTMLBRElement) add(leaves, "\n", marks);
    else if (node instanceof HTMLElement) read(node, { ...marks, ...marksOf(node) }, leaves);
    // Browsers keep spaces at the edges as no-break spaces.
    else add(leaves, (node.nodeValue ?? "").replaceAll("\u00a0", " "), marks);
  }
}

function add(leaves: Leaf[], text: string, marks: Marks): void {
  const last = leaves.at(-1);
  if (last !== undefined && !isObject(last) && isSameMarks(last, marks)) last.text += text;
  else leaves.push({ text, ...marks });
}

function isSameMarks(leaf: Leaf, marks: Marks): boolean {
  const { text: _, ...own } = leaf;
  const names = new Set([...Object.keys(own), ...Object.keys(marks)]) as Set<keyof Marks>;
  return [...names].every((name) =>
    name === "cite" ? isSameCite(own, marks) : own[name] === marks[name],
  );
}

function marksOf(element: HTMLElement): Marks {
  const { type, url, cite, color, form } = element.dataset;
  const made: Marks = {};
  if (type !== undefined) made.type = type as NonNullable<Leaf["type"]>;
  if (url !== undefined) made.url = url;
  if (cite !== undefined) made.cite = JSON.parse(cite) as NonNullable<Leaf["cite"]>;
  if (form !== undefined) made.form = form as NonNullable<Leaf["form"]>;
  if (color !== undefined) made.color = color;
  switch (element.tagName) {
    case "B":
    case "STRONG":
      return { ...made, bold: true };
    case "I":
    case "EM":
      return { ...made, italic: true };
    case "SUP":
      return { ...made, script: "super" };
    case "SUB":
      return { ...made, script: "sub" };
    case "U":
      return { ...made, textDecoration: "underline" };
    case "S":
    case "STRIKE":
      return { ...made, textDecoration: "line-through" };
    default:
      return made;
  }
}
