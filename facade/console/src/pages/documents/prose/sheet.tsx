// The text of the document: one editor over all of its blocks.
import { effect } from "@preact/signals";
import { keymap } from "prosemirror-keymap";
import { EditorState, NodeSelection, Selection, TextSelection } from "prosemirror-state";
import { EditorView } from "prosemirror-view";
import { useLayoutEffect, useRef } from "preact/hooks";

import { blocksWords } from "../../../words/documents/blocks";
import { type Shared, useDocument } from "../context";
import { look } from "../look";
import type { Css } from "../types";
import { assistantPlace } from "../assist/place";
import { blockViews } from "./block_views";
import { KEYS, ownIds, writeBelow } from "./commands";
import { inlineViews } from "./inline_views";
import { pasteRich, pasteText, takeOver } from "./paste";
import { find } from "./positions";
import { idOf, schema } from "./schema";
import { shortcuts } from "./shortcuts";
import { SlashMenu, slashMenu } from "./slash_menu";
import { suggestedPlaces } from "./suggested";
import { FROM_SERVER, emptyText } from "./sync";

export function Sheet() {
  const shared = useDocument();
  const { document, sync } = shared;
  const holder = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const view = createView(shared, holder.current!);
    const ends = [shared.sync.follow(view), followWanted(shared, view)];
    shared.text.value = view;
    return () => {
      shared.text.value = undefined;
      for (const end of ends) end();
      view.destroy();
    };
  }, [shared]);
  // Until something has been written, which is stored a little later.
  const isEmpty = document.order.value.length === 0 && sync.state.value === "saved";
  return (
    <section
      class="sheet"
      aria-label={blocksWords.all}
      style={look(document.style.value.global as Css | undefined)}
    >
      {isEmpty && (
        <p class="hint">{blocksWords.emptyDocument}</p>
      )}
      <div ref={holder} />
      <SlashMenu />
    </section>
  );
}

function createView(shared: Shared, holder: HTMLElement): EditorView {
  const { document, sync, edits } = shared;
  const inline = inlineViews(shared);
  const undo = (isRedo: boolean) => () => {
    void edits.attempt(() => (isRedo ? edits.redo() : edits.undo()));
    return true;
  };
  const view: EditorView = new EditorView(holder, {
    state: EditorState.create({
      doc: schema.nodes["doc"]!.create(null, emptyText()),
      plugins: [
        slashMenu(shared),
        shortcuts,
        keymap({
          "Mod-z": undo(false),
          "Mod-y": undo(true),
          "Mod-Shift-z": undo(true),
          Enter: (state) => openSelected(shared, state),
          Escape: () => {
            if (!shared.assistant.stop()) document.select("");
            return true;
          },
        }),
        keymap(KEYS),
        ownIds,
        assistantPlace(shared),
        suggestedPlaces(shared),
      ],
    }),
    nodeViews: { ...inline.nodeViews, ...blockViews(shared) },
    markViews: inline.markViews,
    attributes: {
      class: "written",
      role: "textbox",
      "aria-multiline": "true",
      "aria-label": blocksWords.text,
    },
    editable: () => sync.isReady,
    dispatchTransaction(transaction) {
      const { state, transactions } = view.state.applyTransaction(transaction);
      view.updateState(state);
      shared.changes.value += 1;
      const isOurs = transactions.some((one) => one.docChanged && !one.getMeta(FROM_SERVER));
      if (isOurs) sync.changed();
      if (view.hasFocus()) document.select(selectedId(state));
    },
    handleDOMEvents: {
      // On a busy machine the browser tells of a moved caret after the next key.
      keydown: () => {
        readCaret(view);
        return false;
      },
      focus: () => {
        shared.focused.value = view;
        document.select(selectedId(view.state));
        return false;
      },
      blur: () => {
        void sync.flush().catch(() => undefined);
        return false;
      },
      // Before ProseMirror reads the HTML, which the page's policy forbids.
      paste: (_view, event) =>
        takeOver(view, event, () => pasteRich(view, event.clipboardData, shared)),
      drop: (_view, event) =>
        view.dragging === null && takeOver(view, event, () => pasteDropped(view, event)),
    },
    handleTextInput(_view, _from, _to, text) {
      // A key replaces no table or figure because that is selected.
      if (!writeBelow(view.state, view.dispatch)) return false;
      view.dispatch(view.state.tr.insertText(text));
      return true;
    },
    handleClick(_view, _position, event) {
      const link = (event.target as HTMLElement).closest<HTMLAnchorElement>("a[href]");
      if (link === null || !(event.ctrlKey || event.metaKey)) return false;
      open(link.href, "_blank", "noopener");
      return true;
    },
  });
  return view;
}

/** Read the selection of the browser now, in place of waiting for its event. */
function readCaret(view: EditorView): void {
  const { domObserver } = view as unknown as { domObserver?: { flush?: () => void } };
  if (!view.composing) domObserver?.flush?.();
}

/** Insert a text from elsewhere where it was dropped. */
function pasteDropped(view: EditorView, event: DragEvent): void {
  const at = view.posAtCoords({ left: event.clientX, top: event.clientY });
  if (at !== null) {
    view.dispatch(view.state.tr.setSelection(Selection.near(view.state.doc.resolve(at.pos))));
  }
  pasteText(view, event.dataTransfer);
}

/** Return the id of the block with the selection. */
export function selectedId({ selection, doc }: EditorState): string {
  const node = doc.maybeChild(selection.$from.index(0));
  return node === null ? "" : idOf(node);
}

/** Open the form of a block that is no text. */
function openSelected({ document }: Shared, { selection }: EditorState): boolean {
  if (!(selection instanceof NodeSelection) || selection.node.type.name !== "thing") return false;
  document.entry(idOf(selection.node)).isEditing.value = true;
  return true;
}

/** Give the focus to the block that another part of the page wants to have it. */
function followWanted({ document, sync }: Shared, view: EditorView): () => void {
  return effect(() => {
    const id = sync.nameOf(document.wanted.value);
    if (id === "") return;
    // It may be about to come.
    void document.order.value;
    const at = find(view.state.doc, id);
    const node = at === undefined ? null : view.state.doc.nodeAt(at);
    if (at === undefined || node === null) return;
    document.wanted.value = "";
    const { doc, tr } = view.state;
    view.dispatch(
      tr
        .setSelection(
          node.isAtom
            ? NodeSelection.create(doc, at)
            : TextSelection.near(doc.resolve(at + node.nodeSize - 1), -1),
        )
        .scrollIntoView(),
    );
    view.focus();
  });
}
