// Blocks in the editor: each in a frame, with a handle to drag it by, and what is to be decided about it.
import { effect } from "@preact/signals";
import type { Node } from "prosemirror-model";
import type { EditorView, NodeView, ViewMutationRecord } from "prosemirror-view";
import { render } from "preact";

import { blocksWords } from "../../../words/documents/blocks";
import type { Shared } from "../context";
import { dragged, dropTarget } from "../drag";
import { EditForm } from "../edit_form";
import type { Entry } from "../document";
import { ABSTRACT_NAMES, Content, LEVELS } from "../kinds/content";
import { type Look, colours, look } from "../look";
import { type Block, type BlockState, type Css, HEADING_TYPES } from "../types";
import { kindOf } from "./blocks";
import { Conflict } from "./conflict";
import { island, renderInto } from "./inline_views";
import { idOf, orderOf, schema } from "./schema";

const { list } = schema.nodes;

/** The frame of a block. What is in it depends on what the block is. */
abstract class FrameView implements NodeView {
  readonly dom = document.createElement("div");
  readonly alert = island("div", "alert");
  protected readonly handle = island("span", "handle");
  #stop = () => {};

  constructor(
    protected node: Node,
    protected readonly shared: Shared,
  ) {
    this.dom.setAttribute("role", "group");
    this.handle.draggable = true;
    this.handle.setAttribute("aria-hidden", "true");
    this.handle.addEventListener("dragstart", (event) => this.#drag(event));
    this.handle.addEventListener("dragend", () => {
      dragged.value = "";
    });
    // Behind the content, which the browser then takes for the first place to write at.
    this.dom.append(this.alert, this.handle);
    const target = dropTarget(() => idOf(this.node), shared.edits);
    this.dom.addEventListener("dragover", target.onDragOver);
    this.dom.addEventListener("dragleave", target.onDragLeave);
    this.dom.addEventListener("drop", target.onDrop);
  }

  /** Show the state of the block that has the node's id, from now on. */
  protected follow(): void {
    this.#stop();
    const id = idOf(this.node);
    const entry = this.shared.document.entry(id);
    const kind = kindOf(this.node);
    this.dom.dataset["block"] = id;
    this.dom.setAttribute("aria-label", blocksWords.names[kind] ?? kind);
    const isHeading = HEADING_TYPES.includes(kind);
    this.handle.title = isHeading ? blocksWords.dragSection : blocksWords.dragBlock;
    const stops = [
      effect(() => {
        const style = entry.state.value?.style ?? {};
        const isIndexed = /^h[123]$/.test(kind) && !style["isHideIndex"];
        const names = ["block", `of-${kind}`];
        if (entry.isSelected.value) names.push("selected");
        if (isIndexed) names.push("indexed");
        if (style["serial"]) names.push("serial");
        this.dom.className = names.join(" ");
      }),
      effect(() => this.show(entry)),
      effect(() => {
        const { sync } = this.shared;
        const conflicts = sync.conflicts.value;
        if (!conflicts.has(id) && !this.alert.hasChildNodes()) return;
        const alert = conflicts.has(id) ? <Conflict id={id} state={conflicts.get(id)} /> : null;
        renderInto(this.alert, this.shared, alert);
      }),
    ];
    this.#stop = () => stops.forEach((stop) => stop());
  }

  /** Show what the entry of the block says; called again when that changes. */
  protected abstract show(entry: Entry): void;

  update(node: Node): boolean {
    if (node.type !== this.node.type || kindOf(node) !== kindOf(this.node)) return false;
    const isRenamed = idOf(node) !== idOf(this.node);
    this.node = node;
    if (isRenamed) this.follow();
    return true;
  }

  stopEvent(event: Event): boolean {
    if (dragged.value !== "") return true;
    const target = event.target as HTMLElement;
    return this.handle.contains(target) || this.alert.contains(target);
  }

  ignoreMutation(mutation: ViewMutationRecord): boolean {
    return mutation.type !== "selection";
  }

  destroy(): void {
    this.#stop();
    render(null, this.alert);
  }

  #drag(event: DragEvent): void {
    dragged.value = idOf(this.node);
    event.dataTransfer?.setData("text/plain", this.node.textContent);
    event.dataTransfer?.setDragImage(this.dom, 0, 0);
  }
}

/** A text or a list, edited in place. */
class TextView extends FrameView {
  readonly contentDOM: HTMLElement;
  readonly #element: HTMLElement;
  #keys: string[] = [];

  constructor(node: Node, shared: Shared) {
    super(node, shared);
    const kind = kindOf(node);
    const content = document.createElement("div");
    content.className = "content";
    this.#element = document.createElement(tagOf(node));
    this.contentDOM = this.#element;
    if (kind === "abstract") {
      this.contentDOM = document.createElement("span");
      this.#element.append(island("strong", "heading"), this.contentDOM);
    }
    content.append(this.#element);
    this.handle.before(content);
    this.#mark();
    this.follow();
  }

  override update(node: Node): boolean {
    if (node.type === list && tagOf(node) !== tagOf(this.node)) return false;
    if (!super.update(node)) return false;
    this.#mark();
    return true;
  }

  override ignoreMutation(mutation: ViewMutationRecord): boolean {
    // The look of the text is ours; a block that seems changed from outside would be made anew.
    const isOfLook = mutation.type === "attributes" && mutation.target === this.contentDOM;
    const isWithin = this.contentDOM.contains(mutation.target);
    return super.ignoreMutation(mutation) && (isOfLook || !isWithin);
  }

  protected show(entry: Entry): void {
    const state = entry.state.value;
    const style = state?.style ?? {};
    const css = style["style"] as Css | undefined;
    const kind = kindOf(this.node);
    const element = this.#element;
    element.className = `kind-${kind}${colours(css)}${style["indent"] ? " indent" : ""}`;
    element.id = state?.block.label === undefined ? "" : `block-${state.block.label}`;
    if (element.id === "") element.removeAttribute("id");
    const made = look(css);
    if (kind === "list") made["listStyleType"] = String(style["orderType"] ?? orderOf(this.node));
    this.#keys = dress(element, made, this.#keys);
    if (element instanceof HTMLOListElement) element.start = state?.block.start ?? 1;
    if (kind === "abstract") {
      const name = ABSTRACT_NAMES[String(style["language"])];
      element.querySelector(".heading")!.textContent = name === undefined ? "" : `${name} `;
    }
  }

  #mark(): void {
    this.contentDOM.classList.toggle("empty", this.node.content.size === 0);
    if (this.node.content.size === 0) this.contentDOM.dataset["name"] = blocksWords.names[kindOf(this.node)];
  }
}

/** Set styles of an element, in place of those of some properties; return the properties that it has. */
function dress(element: HTMLElement, made: Look, before: string[]): string[] {
  for (const key of before) if (!(key in made)) setStyle(element, key, "");
  for (const [key, value] of Object.entries(made)) setStyle(element, key, value);
  return Object.keys(made);
}

function setStyle(element: HTMLElement, key: string, value: string): void {
  const name = key.startsWith("--") ? key : key.replace(/[A-Z]/g, (one) => `-${one.toLowerCase()}`);
  element.style.setProperty(name, value);
}

function tagOf(node: Node): string {
  if (node.type === list) return orderOf(node) === "disc" ? "ul" : "ol";
  const kind = kindOf(node);
  return LEVELS[kind] ?? (kind === "quote" ? "blockquote" : "p");
}

/** A list in an item. */
class InnerListView implements NodeView {
  readonly dom: HTMLElement;
  readonly contentDOM: HTMLElement;

  constructor(private node: Node) {
    this.dom = this.contentDOM = document.createElement(tagOf(node));
    this.dom.style.setProperty("list-style-type", orderOf(node));
  }

  update(node: Node): boolean {
    if (node.type !== this.node.type || orderOf(node) !== orderOf(this.node)) return false;
    this.node = node;
    return true;
  }
}

/** A table, a figure or another block that is no text: as readers see it, or its form. */
class ThingView extends FrameView {
  readonly #content = island("div", "thing");

  constructor(node: Node, shared: Shared) {
    super(node, shared);
    this.handle.before(this.#content);
    this.dom.addEventListener("dblclick", () => {
      this.shared.document.entry(idOf(this.node)).isEditing.value = true;
    });
    this.follow();
  }

  override stopEvent(event: Event): boolean {
    const target = event.target as HTMLElement;
    const isOwn = this.shared.document.entry(idOf(this.node)).isEditing.value;
    return isOwn || super.stopEvent(event) || target.closest("a, button, input, select") !== null;
  }

  override ignoreMutation(): boolean {
    return true;
  }

  override destroy(): void {
    super.destroy();
    render(null, this.#content);
  }

  /** Return the block that it is going to be, as long as it is not stored. */
  #made(): BlockState | undefined {
    const made = this.node.attrs["made"] as Block | null;
    return made === null ? undefined : { block: { ...made, id: "" }, style: {}, text: "" };
  }

  protected show(entry: Entry): void {
    renderInto(this.#content, this.shared, <Thing entry={entry} made={this.#made()} />);
    this.handle.hidden = entry.isEditing.value;
  }
}

/** The place of a block that has not been read yet: a long document has thousands. */
class UnreadView implements NodeView {
  readonly dom = document.createElement("div");

  constructor(node: Node) {
    this.dom.className = "block unread";
    this.dom.dataset["block"] = idOf(node);
  }
}

function Thing({ entry, made }: { entry: Entry; made: BlockState | undefined }) {
  const state = entry.state.value ?? made;
  if (state === undefined) return null;
  if (entry.isEditing.value) return <EditForm entry={entry} state={state} />;
  return (
    <div class="content">
      <Content state={state} />
    </div>
  );
}

/** Return the views of blocks. */
export function blockViews(shared: Shared) {
  return {
    prose: (node: Node) => new TextView(node, shared),
    list: (node: Node, view: EditorView, getPos: () => number | undefined) =>
      view.state.doc.resolve(getPos() ?? 0).depth > 0
        ? new InnerListView(node)
        : new TextView(node, shared),
    thing: (node: Node) =>
      kindOf(node) === "unread" ? new UnreadView(node) : new ThingView(node, shared),
  };
}

