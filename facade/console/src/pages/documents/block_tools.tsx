// What can be done with the selected block.
import { useState } from "preact/hooks";

import { Failure } from "../../parts/failure";
import { title } from "./citations";
import { useDocument } from "./context";
import type { Entry } from "./document";
import { hasMarks } from "./forms/fields";
import { InsertMenu } from "./insert_menu";
import { Properties } from "./properties";
import { TableTools } from "./table_tools";
import { type Block, CONVERTIBLE_TYPES, NAMES, elementsOf } from "./types";

export function BlockTools({ entry, block }: { entry: Entry; block: Block }) {
  const { document, edits } = useDocument();
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [hasProperties, setProperties] = useState(false);

  async function run(act: () => Promise<void>): Promise<void> {
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

  function move(by: 1 | -1): Promise<void> {
    return run(async () => {
      await edits.moveBy(entry.id, by);
      show(entry.id);
    });
  }

  function show(id: string): void {
    document.select(id);
    document.wanted.value = id;
  }

  const isConvertible =
    CONVERTIBLE_TYPES.includes(block.type) &&
    (block.type === "list" || elementsOf(block).length === 0);
  return (
    <div
      class="tools"
      onKeyDown={(event) => {
        if (event.key === "Escape") document.select("");
      }}
    >
      <div role="toolbar" aria-label="Block" class="actions">
        <button
          type="button"
          onClick={() => {
            entry.isEditing.value = true;
          }}
        >
          Edit
        </button>
        <InsertMenu
          label="Insert below…"
          isBusy={isBusy}
          onChoose={(made) =>
            run(async () => {
              const id = await edits.insert(entry.id, [made]);
              document.select(id);
              document.entry(id).isEditing.value = true;
            })
          }
        />
        {isConvertible && (
          <select
            aria-label="Type of the block"
            value={block.type}
            disabled={isBusy}
            onChange={(event) => {
              const type = event.currentTarget.value;
              void run(async () => show(await edits.convert(entry.id, type)));
            }}
          >
            {CONVERTIBLE_TYPES.map((type) => (
              <option key={type} value={type}>
                {NAMES[type]}
              </option>
            ))}
          </select>
        )}
        <button type="button" class="quiet" disabled={isBusy} onClick={() => void move(-1)}>
          Move up
        </button>
        <button type="button" class="quiet" disabled={isBusy} onClick={() => void move(1)}>
          Move down
        </button>
        {block.type === "table" && <TableTools block={block} isBusy={isBusy} onRun={run} />}
        {hasMarks(block) && document.references.value.length > 0 && (
          <select
            aria-label="Cite with the whole block"
            value=""
            disabled={isBusy}
            onChange={(event) => {
              const { value } = event.currentTarget;
              event.currentTarget.value = "";
              if (value) void run(() => edits.cite(block, value === "none" ? null : value.slice(3)));
            }}
          >
            <option value="">Cite…</option>
            <option value="none">No citation</option>
            {document.references.value.map((reference) => (
              <option key={reference.id} value={`id:${reference.id}`}>
                {title(reference)}
              </option>
            ))}
          </select>
        )}
        <button
          type="button"
          class="quiet"
          aria-expanded={hasProperties}
          onClick={() => setProperties(!hasProperties)}
        >
          Style
        </button>
        <button
          type="button"
          class="danger"
          disabled={isBusy}
          onClick={() =>
            void run(async () => {
              const order = document.order.value;
              const place = order.indexOf(entry.id);
              const next = order[place + 1] ?? order[place - 1] ?? "";
              await edits.remove(entry.id);
              if (next) show(next);
            })
          }
        >
          Delete
        </button>
      </div>
      <Failure error={error} />
      {hasProperties && <Properties entry={entry} block={block} />}
    </div>
  );
}
