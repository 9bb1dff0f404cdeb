// What can be done with the selected block, at the foot of the window.
import { useState } from "preact/hooks";
import type { Command } from "prosemirror-state";

import { Failure } from "../../parts/failure";
import { blocksWords } from "../../words/documents/blocks";
import { AssistantMenu } from "./assist/menu";
import { title } from "./citations";
import { useDocument } from "./context";
import type { Entry } from "./document";
import { hasMarks } from "./forms/fields";
import { InsertMenu, insertBelow } from "./insert_menu";
import { LabelField } from "./label_field";
import { Properties } from "./properties";
import { kindOf } from "./prose/blocks";
import { becomeKind, deleteBlock, moveBlock } from "./prose/commands";
import { MarkBar } from "./prose/mark_bar";
import { TableTools } from "./table_tools";
import { type Block, CONVERTIBLE_TYPES, HEADING_TYPES, TEXT_TYPES } from "./types";

const text = blocksWords.tools;

/** Shows the tools of the block that is selected; none while its form is open. */
export function BlockTools() {
  const { document } = useDocument();
  const id = document.selected.value;
  if (id === "" || document.entry(id).isEditing.value) return null;
  return <Tools key={id} entry={document.entry(id)} />;
}

function Tools({ entry }: { entry: Entry }) {
  const shared = useDocument();
  const { document, edits, text: written, focused, changes } = shared;
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [hasProperties, setProperties] = useState(false);
  // Undefined until a new block is stored.
  const block = entry.state.value?.block;
  void changes.value;
  const view = written.value;
  const kind = kindHere(shared) ?? block?.type ?? "";
  const isText = TEXT_TYPES.includes(kind) || kind === "list";

  async function run(act: () => Promise<unknown>): Promise<void> {
    setBusy(true);
    setError(undefined);
    try {
      await act();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  }

  function write(command: Command): void {
    if (view === undefined) return;
    if (kindHere(shared) === undefined) document.wanted.value = entry.id;
    command(view.state, view.dispatch);
    view.focus();
  }

  return (
    <div
      class="tools"
      onKeyDown={(event) => {
        if (event.key === "Escape") view?.focus();
      }}
    >
      {isText && view !== undefined && focused.value === view && <MarkBar />}
      <div role="toolbar" aria-label={text.title} class="actions">
        {!isText && (
          <button
            type="button"
            onClick={() => {
              entry.isEditing.value = true;
            }}
          >
            {text.edit}
          </button>
        )}
        {isText && view !== undefined && <AssistantMenu isEmpty={isWithoutWords(shared)} />}
        <InsertMenu
          label={text.insertBelow}
          isBusy={isBusy}
          onChoose={(made) => run(() => insertBelow(shared, entry.id, made))}
        />
        {CONVERTIBLE_TYPES.includes(kind) && (
          <select
            aria-label={text.type}
            value={kind}
            disabled={isBusy}
            onChange={(event) => {
              const type = event.currentTarget.value;
              if (isText && (TEXT_TYPES.includes(type) || type === "list")) {
                write(becomeKind(type));
              } else {
                void run(async () => {
                  document.wanted.value = await edits.convert(entry.id, type);
                });
              }
            }}
          >
            {CONVERTIBLE_TYPES.map((type) => (
              <option key={type} value={type}>
                {blocksWords.names[type]}
              </option>
            ))}
          </select>
        )}
        <button type="button" class="quiet" onClick={() => write(moveBlock(-1))}>
          {text.moveUp}
        </button>
        <button type="button" class="quiet" onClick={() => write(moveBlock(1))}>
          {text.moveDown}
        </button>
        {block?.type === "table" && <TableTools block={block} isBusy={isBusy} onRun={run} />}
        {block !== undefined && (isText || hasMarks(block)) && document.references.value.length > 0 && (
          <CiteMenu isBusy={isBusy} onCite={(id) => void run(() => edits.cite(entry.id, id))} />
        )}
        {block !== undefined && (
          <button
            type="button"
            class="quiet"
            aria-expanded={hasProperties}
            onClick={() => setProperties(!hasProperties)}
          >
            {text.style}
          </button>
        )}
        <button type="button" class="danger" onClick={() => write(deleteBlock)}>
          {text.remove}
        </button>
      </div>
      <Failure error={error} />
      {hasProperties && block !== undefined && <BlockProperties entry={entry} block={block} />}
    </div>
  );
}

/** Return the type of the block with the selection, if that is the one that is shown as selected. */
function kindHere({ document, text }: ReturnType<typeof useDocument>): string | undefined {
  const view = text.value;
  const node = view?.state.doc.maybeChild(view.state.selection.$from.index(0));
  return node?.attrs["id"] === document.selected.value ? kindOf(node!) : undefined;
}

function isWithoutWords({ text }: ReturnType<typeof useDocument>): boolean {
  const { doc, selection } = text.value!.state;
  return doc.maybeChild(selection.$from.index(0))?.content.size === 0;
}

function BlockProperties({ entry, block }: { entry: Entry; block: Block }) {
  return (
    <>
      <Properties entry={entry} block={block} />
      {HEADING_TYPES.includes(block.type) && <LabelField block={block} />}
    </>
  );
}

function CiteMenu({ isBusy, onCite }: { isBusy: boolean; onCite: (id: string | null) => void }) {
  const { document } = useDocument();
  return (
    <select
      aria-label={text.citeAll}
      value=""
      disabled={isBusy}
      onChange={(event) => {
        const { value } = event.currentTarget;
        event.currentTarget.value = "";
        if (value) onCite(value === "none" ? null : value.slice(3));
      }}
    >
      <option value="">{text.cite}</option>
      <option value="none">{text.noCitation}</option>
      {document.references.value.map((reference) => (
        <option key={reference.id} value={`id:${reference.id}`}>
          {title(reference)}
        </option>
      ))}
    </select>
  );
}
