// The menu of blocks that "/" opens in an empty text.
import { type Signal, signal } from "@preact/signals";
import type { EditorView } from "prosemirror-view";
import { type EditorState, Plugin } from "prosemirror-state";
import { useLayoutEffect, useRef } from "preact/hooks";

import { assistWords } from "../../../words/documents/assist";
import { blocksWords } from "../../../words/documents/blocks";
import type { TaskName } from "../assist/tasks";
import { CHOICES, empty } from "../insert_menu";
import { useDocument } from "../context";
import type { Shared } from "../context";
import { TEXT_TYPES } from "../types";
import { withKind } from "./commands";
import { idOf, schema } from "./schema";

const { prose } = schema.nodes;

/** Tasks for a model, by what chooses them here. */
const TASKS: Record<string, TaskName> = { "task:write": "write", "task:continue": "continue" };
const ALL: readonly (readonly [string, string])[] = [
  ...CHOICES,
  ...Object.entries(TASKS).map(([key, task]) => [key, assistWords.slash[task as "write"]] as const),
];

interface Menu {
  readonly view: EditorView;
  readonly choices: readonly (readonly [string, string])[];
  readonly at: number;
}

export const menu: Signal<Menu | undefined> = signal(undefined);

/** Return what was typed behind "/" in a text that has nothing else. */
function typed(state: EditorState): string | undefined {
  const { $from, empty: isCaret } = state.selection;
  if (!isCaret || $from.parent.type !== prose) return undefined;
  return /^\/([\p{L}\d ]{0,30})$/u.exec($from.parent.textContent)?.[1];
}

function choicesFor(state: EditorState): Menu["choices"] {
  const query = typed(state)?.toLowerCase();
  if (query === undefined) return [];
  return ALL.filter(([, name]) => name.toLowerCase().includes(query));
}

/** Return the plugin that opens the menu and takes its keys. */
export function slashMenu(shared: Shared): Plugin {
  /** The text in which the menu was closed, until it is another one. */
  let closed = "";
  function close(): void {
    menu.value = undefined;
  }
  return new Plugin({
    props: {
      attributes: (): Record<string, string> =>
        menu.value === undefined
          ? {}
          : { "aria-controls": "slash-menu", "aria-activedescendant": `slash-${menu.value.at}` },
      handleKeyDown(view, event) {
        const open = menu.value;
        if (open === undefined) return false;
        const count = open.choices.length;
        if (event.key === "Escape") {
          closed = view.state.selection.$from.parent.textContent;
          close();
        } else if (event.key === "Enter") {
          void choose(view, shared, open.choices[open.at]![0]);
        } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
          const by = event.key === "ArrowDown" ? 1 : count - 1;
          menu.value = { ...open, at: (open.at + by) % count };
          view.dispatch(view.state.tr);
        } else return false;
        event.stopPropagation();
        return true;
      },
      handleDOMEvents: {
        blur() {
          close();
          return false;
        },
      },
    },
    view: () => ({
      update(view, before) {
        if (view.state.doc.eq(before.doc) && view.state.selection.eq(before.selection)) return;
        const text = view.state.selection.$from.parent.textContent;
        if (text !== closed) closed = "";
        const choices = closed === "" && view.hasFocus() ? choicesFor(view.state) : [];
        menu.value = choices.length === 0 ? undefined : { view, choices, at: 0 };
      },
      destroy: close,
    }),
  });
}

/** Make the text that opened the menu a block of a type. */
export async function choose(view: EditorView, shared: Shared, type: string): Promise<void> {
  const { $from } = view.state.selection;
  menu.value = undefined;
  const tr = view.state.tr.delete($from.start(), $from.end());
  const task = TASKS[type];
  if (task !== undefined) {
    view.dispatch(tr);
    await shared.assistant.begin(task);
    return;
  }
  const isText = TEXT_TYPES.includes(type) || type === "list" || type === "numbered";
  if (isText) {
    const order = type === "numbered" ? "decimal" : undefined;
    view.dispatch(withKind(tr, type === "numbered" ? "list" : type, order) ?? tr);
    return;
  }
  const here = idOf($from.parent);
  view.dispatch(tr);
  await shared.edits.attempt(async () => {
    const made = await shared.edits.insert(here, [empty(type)]);
    shared.document.entry(made).isEditing.value = true;
    const at = $from.before();
    const text = view.state.doc.nodeAt(at);
    // The text in which it was chosen makes room for it.
    if (text?.type === prose && text.content.size === 0) {
      view.dispatch(view.state.tr.delete(at, at + text.nodeSize));
    }
  });
}

/** Shows the menu at the caret. */
export function SlashMenu() {
  const shared = useDocument();
  const element = useRef<HTMLUListElement>(null);
  const open = menu.value;
  useLayoutEffect(() => {
    if (open === undefined || element.current === null) return;
    const { left, bottom, top } = open.view.coordsAtPos(open.view.state.selection.head);
    const { style, offsetHeight, offsetWidth } = element.current;
    const isBelow = bottom + offsetHeight < innerHeight - 80;
    style.left = `${Math.max(0, Math.min(left, innerWidth - offsetWidth - 8))}px`;
    style.top = `${isBelow ? bottom + 4 : Math.max(0, top - offsetHeight - 4)}px`;
    element.current.children[open.at]?.scrollIntoView({ block: "nearest" });
  }, [open]);
  if (open === undefined) return null;
  return (
    <ul ref={element} id="slash-menu" class="slash-menu" role="listbox" aria-label={blocksWords.types}>
      {open.choices.map(([type, name], place) => (
        <li
          key={type}
          id={`slash-${place}`}
          role="option"
          aria-selected={place === open.at}
          // Before the text loses the focus.
          onMouseDown={(event) => {
            event.preventDefault();
            void choose(open.view, shared, type);
          }}
        >
          {name}
        </li>
      ))}
    </ul>
  );
}
