// Where in the text a model is at work: its panel stands below the blocks, whose passage is marked.
import { effect } from "@preact/signals";
import { Plugin } from "prosemirror-state";
import { Decoration, DecorationSet } from "prosemirror-view";
import { render } from "preact";

import type { Shared } from "../context";
import { island, renderInto } from "../prose/inline_views";
import { nodesOf, passageAt } from "./target";

/** Return the plugin that shows what `shared.assistant` does. */
export function assistantPlace(shared: Shared): Plugin {
  const { assistant, edits } = shared;
  const panel = island("div", "assistant-place");
  return new Plugin({
    props: {
      decorations({ doc }) {
        const target = assistant.shown.peek()?.target;
        const block = target && nodesOf(doc, target, edits.nameOf);
        if (target === undefined) return null;
        const made = [
          // Blocks that are gone leave it at the end.
          Decoration.widget(block?.to ?? doc.content.size, panel, {
            key: "assistant",
            side: -1,
            stopEvent: () => true,
            ignoreSelection: true,
          }),
        ];
        const marked = passageAt(doc, target, edits.nameOf);
        if (marked) made.push(Decoration.inline(marked.from, marked.to, { class: "asked-about" }));
        return DecorationSet.create(doc, made);
      },
    },
    view(view) {
      let isShown = false;
      const stop = effect(() => {
        const isOpen = assistant.shown.value !== undefined;
        if (isOpen === isShown) return;
        isShown = isOpen;
        // After the transaction that this may be part of.
        queueMicrotask(() => {
          if (view.isDestroyed) return;
          view.dispatch(view.state.tr);
          if (!isOpen) render(null, panel);
        });
        if (!isOpen) return;
        void import("./panel").then(({ Panel }) => renderInto(panel, shared, <Panel />));
      });
      return {
        destroy() {
          stop();
          render(null, panel);
        },
      };
    },
  });
}
