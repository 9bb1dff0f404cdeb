// Buttons for the marks of the selected text, and what can be put into it.
import { toggleMark } from "prosemirror-commands";
import type { MarkType, Node } from "prosemirror-model";
import { type Command, NodeSelection } from "prosemirror-state";
import type { EditorView } from "prosemirror-view";
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";

import { safeAddress } from "../../../parts/links";
import { marksWords as words } from "../../../words/documents/marks";
import { title } from "../citations";
import { useDocument } from "../context";
import { type CitationItem, type Leaf, citationsOf } from "../types";
import { toInline, toLeaves } from "./blocks";
import { schema } from "./schema";

const { formula, object } = schema.nodes;
const { marks } = schema;

export function MarkBar() {
  const { document: open, focused, changes } = useDocument();
  const [address, setAddress] = useState("");
  const [place, setPlace] = useState("");
  const view = focused.value;
  void changes.value;
  const labels = Object.entries(open.labels.value);
  if (view === undefined) return null;

  function run(command: Command): void {
    if (view === undefined) return;
    command(view.state, view.dispatch);
    view.focus();
  }

  /** Cite a reference beside those that the selection cites. */
  function cite(id: string): void {
    if (view === undefined) return;
    const item: CitationItem = place.trim() === "" ? { id } : { id, locator: place.trim() };
    const others = citationsAt(view).filter((other) => other.id !== id);
    const isAlone = others.length === 0 && item.locator === undefined;
    const made = isAlone ? id : [...others, item];
    const { from, to, empty } = view.state.selection;
    const { tr } = view.state;
    view.dispatch(
      empty
        ? tr.replaceSelectionWith(schema.nodes["citation"]!.create({ cite: made }), false)
        : tr.addMark(from, to, marks["cite"]!.create({ cite: made })),
    );
    setPlace("");
    view.focus();
  }

  const selected = selectedAtom(view);
  return (
    <div class="marks" role="toolbar" aria-label={words.title}>
      <Mark type="strong" name={words.bold} run={run} view={view}>
        <b>B</b>
      </Mark>
      <Mark type="em" name={words.italic} run={run} view={view}>
        <i>I</i>
      </Mark>
      <Mark type="underline" name={words.underline} run={run} view={view}>
        <u>U</u>
      </Mark>
      <Mark type="strike" name={words.strike} run={run} view={view}>
        <s>S</s>
      </Mark>
      <Mark type="code" name={words.code} run={run} view={view}>
        <code>{"<>"}</code>
      </Mark>
      <Button name={words.formula} onUse={() => run(makeFormula)}>
        {words.formulaSign}
      </Button>
      <Button name={words.plain} onUse={() => run(plain)}>
        T
      </Button>
      {selected?.type === formula && <TexField view={view} node={selected} />}
      <input
        type="color"
        aria-label={words.colour}
        onChange={(event) => run(setMark(marks["color"]!, { color: event.currentTarget.value }))}
      />
      <select
        aria-label={words.cite}
        value=""
        onChange={(event) => {
          const id = event.currentTarget.value;
          event.currentTarget.value = "";
          if (id) cite(id);
        }}
      >
        <option value="">{words.citeChoice}</option>
        {open.references.value.map((reference) => (
          <option key={reference.id} value={reference.id}>
            {title(reference)}
          </option>
        ))}
      </select>
      <input
        class="place"
        aria-label={words.place}
        placeholder={words.placeExample}
        maxLength={200}
        value={place}
        onInput={(event) => setPlace(event.currentTarget.value)}
        onKeyDown={keepEnter}
      />
      <Button name={words.footnote} onUse={() => run(note)}>
        {words.footnote}
      </Button>
      {labels.length > 0 && (
        <select
          aria-label={words.refer}
          value=""
          onChange={(event) => {
            const ref = event.currentTarget.value;
            event.currentTarget.value = "";
            if (ref) run(insertLeaf({ type: "ref", text: "", ref }));
          }}
        >
          <option value="">{words.referChoice}</option>
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
        aria-label={words.address}
        placeholder={words.addressExample}
        value={address}
        onInput={(event) => setAddress(event.currentTarget.value)}
        onKeyDown={keepEnter}
      />
      <Button
        name={words.link}
        isOff={safeAddress(address) === undefined}
        onUse={() => run(setMark(marks["link"]!, { url: safeAddress(address) ?? "" }))}
      >
        {words.link}
      </Button>
    </div>
  );
}

function keepEnter(event: KeyboardEvent): void {
  if (event.key === "Enter") event.preventDefault();
}

function Mark({
  type,
  name,
  run,
  view,
  children,
}: {
  type: string;
  name: string;
  run: (command: Command) => void;
  view: EditorView;
  children: ComponentChildren;
}) {
  const mark = marks[type]!;
  return (
    <Button name={name} isOn={isActive(view, mark)} onUse={() => run(toggleMark(mark))}>
      {children}
    </Button>
  );
}

function Button({
  name,
  isOff = false,
  isOn,
  onUse,
  children,
}: {
  name: string;
  isOff?: boolean;
  isOn?: boolean;
  onUse: () => void;
  children: ComponentChildren;
}) {
  return (
    <button
      type="button"
      class="quiet"
      title={name}
      aria-label={name}
      aria-pressed={isOn}
      disabled={isOff}
      // The text keeps the focus, and with it the keyboard of a touch screen.
      onMouseDown={(event) => event.preventDefault()}
      onClick={onUse}
    >
      {children}
    </button>
  );
}

/** The TeX of the selected formula. */
function TexField({ view, node }: { view: EditorView; node: Node }) {
  const at = useRef(view.state.selection.from);
  at.current = view.state.selection.from;
  return (
    <input
      class="code tex"
      aria-label={words.formulaField}
      value={node.attrs["tex"] as string}
      onInput={(event) => {
        const tex = event.currentTarget.value;
        const { tr } = view.state;
        tr.setNodeAttribute(at.current, "tex", tex);
        view.dispatch(tr.setSelection(NodeSelection.create(tr.doc, at.current)));
      }}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== "Escape") return;
        event.preventDefault();
        event.stopPropagation();
        view.focus();
      }}
    />
  );
}

function selectedAtom({ state: { selection } }: EditorView): Node | undefined {
  return selection instanceof NodeSelection && selection.node.isInline ? selection.node : undefined;
}

function isActive({ state }: EditorView, type: MarkType): boolean {
  const { from, to, empty, $from } = state.selection;
  if (empty) return type.isInSet(state.storedMarks ?? $from.marks()) !== undefined;
  return state.doc.rangeHasMark(from, to, type);
}

function setMark(type: MarkType, attrs: Record<string, unknown>): Command {
  return ({ tr, selection: { from, to, empty } }, dispatch) => {
    if (empty) return false;
    dispatch?.(tr.addMark(from, to, type.create(attrs)));
    return true;
  };
}

/** Make the selected text a formula, and a selected formula text. */
const makeFormula: Command = ({ tr, selection, doc }, dispatch) => {
  const { from, to } = selection;
  if (selection instanceof NodeSelection && selection.node.type === formula) {
    const tex = selection.node.attrs["tex"] as string;
    dispatch?.(tex === "" ? tr.deleteSelection() : tr.replaceSelectionWith(schema.text(tex), false));
    return true;
  }
  const tex = doc.textBetween(from, to, " ");
  tr.replaceSelectionWith(formula!.create({ tex }));
  // An empty one is selected, so that its TeX can be written.
  if (tex === "") tr.setSelection(NodeSelection.create(tr.doc, from));
  dispatch?.(tr);
  return true;
};

/** Take all marks away; formulas become their TeX. */
const plain: Command = ({ tr, selection: { from, to }, doc }, dispatch) => {
  const atoms: { at: number; tex: string }[] = [];
  doc.nodesBetween(from, to, (node, at) => {
    if (node.type === formula) atoms.push({ at, tex: node.attrs["tex"] as string });
  });
  for (const { at, tex } of atoms.reverse()) {
    if (tex !== "") tr.replaceWith(at, at + 1, schema.text(tex));
  }
  dispatch?.(tr.removeMark(from, tr.mapping.map(to)));
  return true;
};

/** Make a footnote of the selection, or a text of the selected footnote. */
const note: Command = ({ tr, selection }, dispatch) => {
  const { from, to, empty, $from, $to } = selection;
  if (empty || !$from.sameParent($to)) return false;
  const part = $from.parent.copy($from.parent.content.cut($from.parentOffset, $to.parentOffset));
  const leaves = toLeaves(part);
  const [only] = leaves;
  const isNote = leaves.length === 1 && only?.type === "note";
  const inner = leaves.flatMap((leaf) => (leaf.type === "note" ? (leaf.children ?? []) : leaf));
  const made: Leaf[] = isNote ? inner : [{ type: "note", text: "", children: inner }];
  dispatch?.(tr.replaceWith(from, to, toInline(made)));
  return true;
};

function insertLeaf(leaf: Leaf): Command {
  return ({ tr, selection: { to } }, dispatch) => {
    dispatch?.(tr.insert(to, object!.create({ leaf })));
    return true;
  };
}

/** Return what a selection cites: what its first part with a citation does. */
function citationsAt({ state: { doc, selection } }: EditorView): CitationItem[] {
  let made: CitationItem[] | undefined;
  doc.nodesBetween(selection.from, selection.to, (node) => {
    const mark = marks["cite"]!.isInSet(node.marks);
    if (mark) made ??= citationsOf({ text: "", cite: mark.attrs["cite"] as Leaf["cite"] });
  });
  return made ?? [];
}

