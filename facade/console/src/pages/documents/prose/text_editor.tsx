// A text of its own in a form: a cell, a caption, the text of a label's item.
import { keymap } from "prosemirror-keymap";
import { EditorState, Selection } from "prosemirror-state";
import { EditorView } from "prosemirror-view";
import { baseKeymap } from "prosemirror-commands";
import { useLayoutEffect, useRef } from "preact/hooks";

import { useDocument } from "../context";
import type { Leaf } from "../types";
import { toInline, toLeaves } from "./blocks";
import { MARK_KEYS } from "./commands";
import { inlineViews } from "./inline_views";
import { pasteText, takeOver } from "./paste";
import { schema } from "./schema";
import { inlineShortcuts } from "./shortcuts";

/** Where a form finds the text that is written. */
export interface Holder {
  view: EditorView | undefined;
}

/** Return the leaves of a text that is written. */
export function readLeaves({ view }: Holder): Leaf[] {
  return view === undefined ? [] : toLeaves(view.state.doc);
}

/** Shows an editable text; `holder` is what `readLeaves` takes. */
export function TextEditor({
  leaves,
  label,
  holder,
  isFirst = false,
}: {
  leaves: Leaf[];
  label: string;
  holder: Holder;
  /** Whether it takes the focus when it appears. */
  isFirst?: boolean;
}) {
  const shared = useDocument();
  const element = useRef<HTMLDivElement>(null);
  // Before the next key is handled, so that none is lost.
  useLayoutEffect(() => {
    const doc = schema.nodes["line"]!.create(null, toInline(leaves));
    const { "Mod-Enter": _, Enter: __, ...base } = baseKeymap;
    const keys = { ...base, ...MARK_KEYS, Enter: MARK_KEYS["Shift-Enter"]! };
    const view: EditorView = new EditorView(element.current, {
      state: EditorState.create({ doc, plugins: [inlineShortcuts, keymap(keys)] }),
      ...inlineViews(shared),
      attributes: { class: "rich", role: "textbox", "aria-multiline": "true", "aria-label": label },
      dispatchTransaction(transaction) {
        view.updateState(view.state.apply(transaction));
        shared.changes.value += 1;
      },
      handleDOMEvents: {
        focus: () => {
          shared.focused.value = view;
          return false;
        },
        // Before ProseMirror reads the HTML, which the page's policy forbids.
        paste: (_view, event) => takeOver(view, event, () => pasteText(view, event.clipboardData)),
        drop: (_view, event) => takeOver(view, event, () => pasteText(view, event.dataTransfer)),
      },
    });
    holder.view = view;
    if (isFirst) {
      view.dispatch(view.state.tr.setSelection(Selection.atEnd(view.state.doc)));
      view.focus();
    }
    return () => {
      if (shared.focused.value === view) shared.focused.value = undefined;
      view.destroy();
    };
  }, []);
  return <div ref={element} class="rich-holder" />;
}

