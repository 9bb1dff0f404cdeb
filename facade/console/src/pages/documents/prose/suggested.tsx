// Pending suggestions in the text: what they would change is marked there, with the decision below.
import { effect } from "@preact/signals";
import type { Node } from "prosemirror-model";
import { Plugin, PluginKey } from "prosemirror-state";
import { Decoration, DecorationSet } from "prosemirror-view";
import { render } from "preact";

import type { Shared } from "../context";
import { SuggestionInText } from "../suggestion_card";
import type { SuggestedBlock, Suggestion } from "../suggestions";
import { wordDiff } from "../word_diff";
import { island, renderInto } from "./inline_views";
import { idOf, schema } from "./schema";

const { prose } = schema.nodes;
const key = new PluginKey<DecorationSet>("suggested");
// Where several stand between two blocks: what would be inserted, and below that the decision.
const INSERTED_SIDE = -3;
const DECISION_SIDE = -2;

interface Place {
  readonly node: Node;
  readonly from: number;
  readonly to: number;
}

/** Return the plugin that shows the suggestions in the text, but that of the assistant's panel. */
export function suggestedPlaces(shared: Shared): Plugin {
  const { assistant, suggestions } = shared;
  const decorate = (doc: Node): DecorationSet => {
    const inPanel = assistant.shown.peek()?.suggestionId;
    const shown = suggestions.pending.peek().filter(({ id }) => id !== inPanel);
    if (shown.length === 0) return DecorationSet.empty;
    const places = placesOf(doc);
    return DecorationSet.create(
      doc,
      shown.flatMap((one) => new Marker(shared, places, one).decorations),
    );
  };
  return new Plugin({
    key,
    state: {
      init: (_, { doc }) => decorate(doc),
      apply: (tr, before) =>
        tr.docChanged || tr.getMeta(key) === true ? decorate(tr.doc) : before,
    },
    props: {
      decorations: (state) => key.getState(state),
    },
    view(view) {
      const stop = effect(() => {
        void suggestions.pending.value;
        void assistant.shown.value?.suggestionId;
        // After the transaction that this may be part of.
        queueMicrotask(() => {
          if (!view.isDestroyed) view.dispatch(view.state.tr.setMeta(key, true));
        });
      });
      return { destroy: stop };
    },
  });
}

function placesOf(doc: Node): ReadonlyMap<string, Place> {
  const places = new Map<string, Place>();
  let from = 0;
  for (const node of doc.children) {
    const to = from + node.nodeSize;
    places.set(idOf(node), { node, from, to });
    from = to;
  }
  return places;
}

/** Makes the decorations of one suggestion. */
class Marker {
  readonly decorations: Decoration[] = [];
  readonly #shared: Shared;
  readonly #places: ReadonlyMap<string, Place>;
  readonly #id: string;
  /** Where new blocks would stand, by their ids. */
  readonly #inserted = new Map<string, number>();

  constructor(shared: Shared, places: ReadonlyMap<string, Place>, suggestion: Suggestion) {
    this.#shared = shared;
    this.#places = places;
    this.#id = suggestion.id;
    const { blocks, stale } = suggestion;
    const unmarked: string[] = [];
    const ends: number[] = [];
    for (const block of blocks) {
      const place = places.get(block.blockId);
      // What it would make of blocks that have been edited since is not known.
      if (!stale && !this.#mark(block, place)) unmarked.push(block.blockId);
      if (place !== undefined) ends.push(place.to);
    }
    ends.push(...this.#inserted.values());
    if (ends.length === 0) return;
    const at = Math.max(...ends);
    this.#widget(at, `decision ${unmarked.join(" ")}`, DECISION_SIDE, () => {
      const element = island("div", "suggested-place");
      renderInto(element, shared, <SuggestionInText id={suggestion.id} unmarked={unmarked} />);
      return element;
    });
  }

  /** Mark a block; return false if what would change is shown with the decision alone. */
  #mark(block: SuggestedBlock, place: Place | undefined): boolean {
    const { before, after, afterId } = block;
    const isMoved = before !== undefined && afterId !== undefined;
    if (after !== undefined && (before === undefined || isMoved)) this.#insert(block, after);
    if (before === undefined || place === undefined) return true;
    if (after === undefined || isMoved) {
      this.decorations.push(
        Decoration.node(place.from, place.to, { "data-suggested": "removed" }),
      );
      return true;
    }
    const changes = this.#changes(place, before, after);
    this.decorations.push(
      ...(changes ?? [Decoration.node(place.from, place.to, { "data-suggested": "changed" })]),
    );
    return changes !== undefined;
  }

  #insert({ blockId, afterId = "" }: SuggestedBlock, text: string): void {
    const at = afterId === "" ? 0 : (this.#inserted.get(afterId) ?? this.#places.get(afterId)?.to);
    if (at === undefined) return;
    this.#inserted.set(blockId, at);
    this.#widget(at, `${blockId} ${text}`, INSERTED_SIDE, () => {
      const element = island("ins", "suggested-block");
      void import("../../../parts/markdown").then(({ Markdown }) => {
        renderInto(element, this.#shared, <Markdown text={text} />);
      });
      return element;
    });
  }

  /** Return the marks of the words that would change; undefined for a text that is not plain. */
  #changes({ node, from }: Place, before: string, after: string): Decoration[] | undefined {
    const [old, by] = [withoutSigns(before), withoutSigns(after)];
    const isPlain = node.type === prose && node.content.size === node.textContent.length;
    if (!isPlain || node.textContent !== old || old === by) return undefined;
    let at = from + 1;
    return wordDiff(old, by).flatMap(({ kind, text }) => {
      if (kind === "added") return [this.#added(at, text)];
      const start = at;
      at += text.length;
      const attributes = { nodeName: "del", class: "suggested-deletion" };
      return kind === "same" ? [] : [Decoration.inline(start, at, attributes)];
    });
  }

  #added(at: number, text: string): Decoration {
    const key = `${this.#id} ${text}`;
    const make = () => {
      const element = island("ins", "suggested-insertion");
      element.textContent = text;
      return element;
    };
    return Decoration.widget(at, make, { key, side: 1, ignoreSelection: true });
  }

  #widget(at: number, name: string, side: number, make: () => HTMLElement): void {
    this.decorations.push(
      Decoration.widget(at, make, {
        key: `${this.#id} ${name}`,
        side,
        stopEvent: () => true,
        ignoreSelection: true,
        destroy: (element) => render(null, element as Element),
      }),
    );
  }
}

/** Return the Markdown of a heading without its signs, which are no part of the text. */
function withoutSigns(markdown: string): string {
  return markdown.replace(/^#+ /, "");
}
