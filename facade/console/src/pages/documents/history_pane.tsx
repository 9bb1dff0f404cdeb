// The edits of the document, what each changed, and the way back to an earlier state.
import { useState } from "preact/hooks";

import { ConfirmButton } from "../../parts/confirm";
import { Failure } from "../../parts/failure";
import { when } from "../../parts/formats";
import { useLoaded } from "../../parts/loading";
import { useActions } from "../../parts/actions";
import { useDocument } from "./context";
import { DifferenceText } from "./difference";

const ENTRIES = 50;

interface Entry {
  revision: number;
  time: number;
  own: boolean;
  operation: string;
  reversed?: number;
}

interface Difference {
  blockId: string;
  before?: string;
  after?: string;
}

// What operations did, for people.
const OPERATIONS: Record<string, string> = {
  insert: "Inserted blocks",
  delete: "Deleted a block",
  replace: "Changed a block",
  append: "Added a text",
  restore: "Changed texts or blocks",
  cite: "Changed citations",
  move: "Moved blocks",
  sequence: "Several edits",
  undo: "Undid an edit",
  redo: "Redid an edit",
  "replace-blocks": "Changed blocks",
  "style-leaf": "Changed marks",
  "style-block": "Changed the style of a block",
  "style-article": "Changed the style of the document",
  "add-reference": "Added a reference",
  "add-references": "Added references",
  "update-reference": "Changed a reference",
  "delete-reference": "Deleted a reference",
};

export function HistoryPane() {
  const { document } = useDocument();
  const [pages, setPages] = useState(1);
  const revision = document.shownRevision.value;
  const { data, error } = useLoaded(
    (signal) => read(document.session, pages * ENTRIES, signal),
    [document, revision, pages],
  );
  return (
    <section aria-labelledby="history" class="history-pane">
      <h2 id="history">History</h2>
      <Failure error={error} />
      <ol class="plain">
        {data?.entries.map((entry) => (
          <li key={entry.revision}>
            <EntryCard entry={entry} newest={revision} />
          </li>
        ))}
      </ol>
      {data?.entries.length === 0 && <p class="hint">Nothing has been edited yet.</p>}
      {data?.hasMore && pages < 10 && (
        <button type="button" class="quiet" onClick={() => setPages(pages + 1)}>
          Earlier edits
        </button>
      )}
    </section>
  );
}

function read(
  session: ReturnType<typeof useDocument>["document"]["session"],
  limit: number,
  signal: AbortSignal,
): Promise<{ entries: Entry[]; hasMore: boolean }> {
  return session.call("history/list", () => ({ limit }), signal);
}

function EntryCard({ entry, newest }: { entry: Entry; newest: number }) {
  const { document, edits } = useDocument();
  const { error, run } = useActions();
  const [differences, setDifferences] = useState<readonly Difference[]>();

  async function show(): Promise<void> {
    const range = { from: entry.revision - 1, to: entry.revision };
    const { blocks } = await document.session.call<{ blocks: Difference[] }>(
      "history/diff",
      () => range,
    );
    setDifferences(blocks);
  }

  const what = OPERATIONS[entry.operation] ?? entry.operation;
  return (
    <article class="review" aria-label={`Revision ${entry.revision}`}>
      <p>
        <strong>{entry.revision}</strong> {what}
        {entry.reversed !== undefined && ` (${entry.reversed})`}
      </p>
      <p class="hint">
        {entry.own ? "You" : "Somebody else"} · {when(entry.time / 1000)}
      </p>
      <div class="actions">
        <button
          type="button"
          class="quiet"
          aria-expanded={differences !== undefined}
          onClick={() =>
            void run(async () => {
              if (differences === undefined) await show();
              else setDifferences(undefined);
            })
          }
        >
          {differences === undefined ? "Show changes" : "Hide changes"}
        </button>
        {entry.revision !== newest && (
          <ConfirmButton
            label="Restore"
            name={`revision ${entry.revision}`}
            question="Make the document what it was then? That is an edit, which can be undone."
            onConfirm={() => run(() => edits.restore(entry.revision))}
          />
        )}
      </div>
      <Failure error={error} />
      {differences?.map((one) => (
        <BlockDifference key={one.blockId} difference={one} />
      ))}
      {differences?.length === 0 && <p class="hint">No text has changed.</p>}
    </article>
  );
}

function BlockDifference({ difference }: { difference: Difference }) {
  const { before, after } = difference;
  if (before === undefined) return <ins>{after}</ins>;
  if (after === undefined) return <del>{before}</del>;
  if (before === after) return <p class="said">{after} (moved, or its style changed)</p>;
  return <DifferenceText before={before} after={after} />;
}
