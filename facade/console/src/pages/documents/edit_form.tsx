// The form in which a block is edited. What others make of the block meanwhile is shown above it, and
// what was typed stays until it is saved or given up.
import { useRef, useState } from "preact/hooks";

import { Failure } from "../../parts/failure";
import { words } from "../../words/common";
import { blocksWords } from "../../words/documents/blocks";
import { formsWords } from "../../words/documents/forms";
import { useDocument } from "./context";
import type { Entry } from "./document";
import { ConflictError, isSame } from "./edits";
import { CaptionFields } from "./forms/caption_fields";
import { Fields, hasMarks } from "./forms/fields";
import type { Collect } from "./forms/form";
import { Content } from "./kinds/content";
import { MarkBar } from "./prose/mark_bar";
import { type BlockContent, type BlockState, CAPTIONED_TYPES, type NewBlock } from "./types";

const { conflicts } = blocksWords;

export function EditForm({ entry, state }: { entry: Entry; state: BlockState }) {
  const { document, edits } = useDocument();
  const [base] = useState(state.block);
  const collect = useRef<Collect>(() => ({}));
  const collectCaption = useRef<Collect>(() => ({}));
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const isGone = entry.isGone.value;
  const isStale = !isGone && !isSame(state.block, base);

  async function save(): Promise<void> {
    setBusy(true);
    setError(undefined);
    try {
      if (isGone) {
        const order = document.order.value;
        const before = order[order.indexOf(entry.id) - 1] ?? "";
        const { id: _, children: __, ...rest } = base;
        const made = await edits.insert(before, [withoutNulls({ ...rest, ...collected() })]);
        document.forget(entry);
        show(made);
      } else {
        // Over the newer state only after it has been shown.
        await edits.replace(isStale ? state.block : base, collected());
        entry.isEditing.value = false;
        show(entry.id);
      }
    } catch (failure) {
      // A conflict shows itself, with the newer state.
      if (!(failure instanceof ConflictError)) setError(failure);
    } finally {
      setBusy(false);
    }
  }

  function collected(): BlockContent {
    return { ...collect.current(), ...collectCaption.current() };
  }

  function giveUp(): void {
    document.forget(entry);
    show(entry.id);
  }

  function show(id: string): void {
    document.select(id);
    document.wanted.value = id;
  }

  return (
    <form
      class="edit"
      aria-label={formsWords.title}
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
          event.preventDefault();
          void save();
        } else if (event.key === "Escape") {
          event.stopPropagation();
          giveUp();
        }
      }}
      onDblClick={(event) => event.stopPropagation()}
    >
      {isGone && (
        <p class="failure" role="alert">
          {conflicts.deleted}
        </p>
      )}
      {isStale && (
        <div class="failure" role="alert">
          <p>{formsWords.changed}</p>
          <div class="newer">
            <Content state={state} />
          </div>
        </div>
      )}
      {(hasMarks(base) || CAPTIONED_TYPES.includes(base.type)) && <MarkBar />}
      <Fields
        block={base}
        provide={(read) => {
          collect.current = read;
        }}
      />
      <CaptionFields
        block={base}
        provide={(read) => {
          collectCaption.current = read;
        }}
      />
      <Failure error={error} />
      <div class="actions">
        <button type="submit" disabled={isBusy}>
          {isGone ? conflicts.saveAsNew : isStale ? conflicts.saveMine : words.save}
        </button>
        <button type="button" class="quiet" onClick={giveUp}>
          {isStale || isGone ? conflicts.giveUp : words.cancel}
        </button>
        <span class="hint">{formsWords.keys}</span>
      </div>
    </form>
  );
}

/** Return a block to insert: what it does not have is left out. */
function withoutNulls(content: BlockContent & { type: string }): NewBlock {
  const entries = Object.entries(content).filter(([, value]) => value !== null);
  return Object.fromEntries(entries) as unknown as NewBlock;
}
