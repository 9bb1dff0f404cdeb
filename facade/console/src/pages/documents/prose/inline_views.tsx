// What stands in a text and is no text, as readers see it: formulas, notes, references and citations.
import type { Mark, Node } from "prosemirror-model";
import type { MarkView, NodeView } from "prosemirror-view";
import { type ComponentChildren, render } from "preact";

import { type Shared, ShareDocument } from "../context";
import { Formula } from "../kinds/formula";
import { Citations, Leaves } from "../kinds/leaves";
import { type Leaf, citationsOf } from "../types";

/** Render into an element of the editor, with what the parts of a document share. */
export function renderInto(element: Element, shared: Shared, children: ComponentChildren): void {
  render(<ShareDocument value={shared}>{children}</ShareDocument>, element);
}

/** Return an element that the browser edits only as a whole. */
export function island(tag: string, name: string): HTMLElement {
  const element = document.createElement(tag);
  element.className = name;
  element.contentEditable = "false";
  return element;
}

/** An atom in a text, rendered by a component. */
class AtomView implements NodeView {
  readonly dom: HTMLElement;

  constructor(
    private node: Node,
    private readonly shared: Shared,
  ) {
    this.dom = island("span", `atom of-${node.type.name}`);
    this.#render();
  }

  update(node: Node): boolean {
    if (node.type !== this.node.type) return false;
    if (!node.sameMarkup(this.node)) {
      this.node = node;
      this.#render();
    }
    return true;
  }

  ignoreMutation(): boolean {
    return true;
  }

  destroy(): void {
    render(null, this.dom);
  }

  #render(): void {
    renderInto(this.dom, this.shared, shown(this.node));
  }
}

function shown({ type, attrs }: Node): ComponentChildren {
  switch (type.name) {
    case "formula": {
      const tex = attrs["tex"] as string;
      return tex.trim() === "" ? (
        <code>TeX</code>
      ) : (
        <Formula tex={tex} isBlock={attrs["isDisplayed"] as boolean} />
      );
    }
    case "object":
      return <Leaves leaves={[attrs["leaf"] as Leaf]} />;
    default:
      return <Citations items={citationsOf({ text: "", cite: attrs["cite"] as Leaf["cite"] })} />;
  }
}

/** A text with its citation behind it. */
class CiteView implements MarkView {
  readonly dom = document.createElement("span");
  readonly contentDOM = document.createElement("span");
  readonly #marks = island("span", "citations");

  constructor(mark: Mark, shared: Shared) {
    this.dom.className = "cited";
    this.dom.append(this.contentDOM, this.#marks);
    const items = citationsOf({ text: "", cite: mark.attrs["cite"] as Leaf["cite"] });
    renderInto(this.#marks, shared, <Citations items={items} />);
  }

  ignoreMutation(mutation: { target: globalThis.Node }): boolean {
    return !this.contentDOM.contains(mutation.target);
  }

  destroy(): void {
    render(null, this.#marks);
  }
}

/** A text in a colour, which stays legible on dark pages. */
class ColorView implements MarkView {
  readonly dom = document.createElement("span");

  constructor(mark: Mark) {
    this.dom.className = "inked";
    this.dom.style.setProperty("--ink", mark.attrs["color"] as string);
  }
}

/** Return the views of what stands in texts. */
export function inlineViews(shared: Shared) {
  const atom = (node: Node) => new AtomView(node, shared);
  return {
    nodeViews: { formula: atom, object: atom, citation: atom },
    markViews: {
      cite: (mark: Mark) => new CiteView(mark, shared),
      color: (mark: Mark) => new ColorView(mark),
    },
  };
}
