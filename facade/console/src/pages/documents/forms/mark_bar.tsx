// Buttons for the marks of the selected text, in whichever rich text it is.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { safeAddress } from "../../../parts/links";
import { title } from "../citations";
import { useDocument } from "../context";
import { mark, readLeaves, toNode } from "./rich_text";
import { type CitationItem, type Leaf, citationsOf } from "../types";

export function MarkBar() {
  const { document: open } = useDocument();
  const lastRange = useLastRange();
  const [address, setAddress] = useState("");
  const [place, setPlace] = useState("");
  const labels = Object.entries(open.labels.value);

  function act(change: (selected: Range) => void): void {
    const selected = lastRange();
    if (selected === null) return;
    const root = richText(selected.startContainer);
    if (root === undefined || richText(selected.endContainer) !== root) return;
    root.focus();
    getSelection()?.removeAllRanges();
    getSelection()?.addRange(selected);
    change(selected);
  }

  /** Put marks on the selection, in place of those of the same kind inside it. */
  function put(marks: Omit<Leaf, "text">, isPlain = false): void {
    act((selected) => {
      if (selected.collapsed) return;
      const content = selected.extractContents();
      const inner = isPlain ? document.createTextNode(content.textContent ?? "") : content;
      for (const name of Object.keys(marks)) {
        for (const one of content.querySelectorAll<HTMLElement>(`[data-${name}]`)) {
          delete one.dataset[name];
        }
      }
      const made = mark(inner, marks);
      selected.insertNode(made);
      getSelection()?.selectAllChildren(made);
    });
  }

  /** Cite a reference beside those that the selection cites. */
  function cite(id: string): void {
    const item: CitationItem = place.trim() === "" ? { id } : { id, locator: place.trim() };
    const others = citationsAt(lastRange()).filter((other) => other.id !== id);
    const isAlone = others.length === 0 && item.locator === undefined;
    put({ cite: isAlone ? id : [...others, item] });
    setPlace("");
  }

  /** Make a footnote of the selection, or a text of the footnote in it. */
  function note(): void {
    act((selected) => {
      const holder = document.createElement("div");
      holder.append(selected.extractContents());
      const leaves = readLeaves(holder);
      const [only] = leaves;
      if (only === undefined) return;
      const isNote = leaves.length === 1 && only.type === "note";
      const children = leaves.flatMap((leaf) => (leaf.type === "note" ? (leaf.children ?? []) : leaf));
      const made = isNote ? children : [{ type: "note" as const, text: "", children }];
      const nodes = document.createElement("span");
      nodes.append(...made.map(toNode));
      insertBetween(selected, nodes);
      getSelection()?.selectAllChildren(nodes);
    });
  }

  return (
    <div class="marks" role="toolbar" aria-label="Marks of the selected text">
      <Mark onUse={() => act(() => document.execCommand("bold"))} name="Bold">
        <b>B</b>
      </Mark>
      <Mark onUse={() => act(() => document.execCommand("italic"))} name="Italic">
        <i>I</i>
      </Mark>
      <Mark onUse={() => act(() => document.execCommand("underline"))} name="Underline">
        <u>U</u>
      </Mark>
      <Mark onUse={() => act(() => document.execCommand("strikeThrough"))} name="Strike through">
        <s>S</s>
      </Mark>
      <Mark onUse={() => put({ type: "inlinecode" }, true)} name="Code">
        <code>{"<>"}</code>
      </Mark>
      <Mark onUse={() => put({ type: "latex" }, true)} name="Formula in TeX">
        TeX
      </Mark>
      <Mark
        onUse={() =>
          act((selected) => {
            const plain = document.createElement("span");
            plain.textContent = selected.toString();
            selected.deleteContents();
            insertBetween(selected, plain);
            getSelection()?.selectAllChildren(plain);
          })
        }
        name="No marks"
      >
        T
      </Mark>
      <input
        type="color"
        aria-label="Colour"
        onChange={(event) => put({ color: event.currentTarget.value })}
      />
      <select
        aria-label="Cite a reference"
        value=""
        onChange={(event) => {
          const id = event.currentTarget.value;
          event.currentTarget.value = "";
          if (id) cite(id);
        }}
      >
        <option value="">Cite…</option>
        {open.references.value.map((reference) => (
          <option key={reference.id} value={reference.id}>
            {title(reference)}
          </option>
        ))}
      </select>
      <input
        class="place"
        aria-label="Place in the reference to cite"
        placeholder="p. 3"
        maxLength={200}
        value={place}
        onInput={(event) => setPlace(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") event.preventDefault();
        }}
      />
      <Mark onUse={note} name="Footnote">
        Footnote
      </Mark>
      {labels.length > 0 && (
        <select
          aria-label="Refer to a block"
          value=""
          onChange={(event) => {
            const ref = event.currentTarget.value;
            event.currentTarget.value = "";
            if (!ref) return;
            act((selected) => {
              selected.collapse(false);
              insertBetween(selected, toNode({ type: "ref", text: "", ref }));
            });
          }}
        >
          <option value="">Refer to…</option>
          {labels.map(([label, { text }]) => (
            <option key={label} value={label}>
              {text}
            </option>
          ))}
        </select>
      )}
      <input
        type="url"
        class="address"
        aria-label="Address of a link"
        placeholder="https://…"
        value={address}
        onInput={(event) => setAddress(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") event.preventDefault();
        }}
      />
      <Mark
        onUse={() => put({ type: "url", url: safeAddress(address) ?? "" }, true)}
        name="Link"
        isOff={safeAddress(address) === undefined}
      >
        Link
      </Mark>
    </div>
  );
}

function Mark({
  name,
  isOff = false,
  onUse,
  children,
}: {
  name: string;
  isOff?: boolean;
  onUse: () => void;
  children: ComponentChildren;
}) {
  return (
    <button type="button" class="quiet" title={name} aria-label={name} disabled={isOff} onClick={onUse}>
      {children}
    </button>
  );
}

/**
 * Return a function that reads the selection as it last was in a rich text: a field takes the
 * selection from it.
 */
function useLastRange(): () => Range | null {
  const last = useRef<Range | null>(null);
  function read(): Range | null {
    const selection = getSelection();
    if (selection?.rangeCount) {
      const range = selection.getRangeAt(0);
      if (richText(range.startContainer) !== undefined) last.current = range.cloneRange();
    }
    return last.current;
  }
  // Before the next key is handled, as its event would be missed. Events come late, too: so the
  // selection is also read when a mark is chosen.
  useLayoutEffect(() => {
    document.addEventListener("selectionchange", read);
    return () => document.removeEventListener("selectionchange", read);
  }, []);
  return read;
}

/** Return what a selection cites: what its first part with a citation does. */
function citationsAt(range: Range | null): CitationItem[] {
  if (range === null) return [];
  const start = range.startContainer;
  const around = (start instanceof Element ? start : start.parentElement)?.closest("[data-cite]");
  const cited = around ?? range.cloneContents().querySelector("[data-cite]");
  const cite = cited instanceof HTMLElement ? cited.dataset["cite"] : undefined;
  if (cite === undefined) return [];
  return citationsOf({ text: "", cite: JSON.parse(cite) as NonNullable<Leaf["cite"]> });
}

function richText(node: Node): HTMLElement | undefined {
  const element = node instanceof Element ? node : node.parentElement;
  return element?.closest<HTMLElement>(".rich") ?? undefined;
}

/** Insert a node at a range, and cut the elements with marks around it in two. */
function insertBetween(range: Range, node: Node): void {
  const root = richText(range.startContainer);
  let top: Node = range.startContainer;
  if (root === undefined || top === root) {
    range.insertNode(node);
    return;
  }
  while (top.parentNode !== null && top.parentNode !== root) top = top.parentNode;
  const rest = document.createRange();
  rest.setStart(range.startContainer, range.startOffset);
  rest.setEndAfter(top);
  const tail = rest.extractContents();
  const hasTail = hasContent(tail);
  (top as ChildNode).after(...(hasTail ? [node, tail] : [node]));
  // A part without text would cite once more; where neither part has text, the first one stays.
  if (hasTail && !hasContent(top)) (top as ChildNode).remove();
}

function hasContent(node: Node): boolean {
  return node.textContent !== "" || (node as ParentNode).querySelector?.("br") != null;
}
