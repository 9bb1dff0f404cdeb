// The edits of the document, what each changed, and the way back to an earlier state.
import { useState } from "preact/hooks";

import { ConfirmButton } from "../../parts/confirm";
import { Failure } from "../../parts/failure";
import { exact, when } from "../../parts/formats";
import { useLoaded } from "../../parts/loading";
import { useActions } from "../../parts/actions";
import { editsWords } from "../../words/documents/edits";
import { historyWords as text } from "../../words/documents/history";
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
      <h2 id="history">{text.title}</h2>
      <Failure error={error} />
      <ol class="plain">
        {data?.entries.map((entry) => (
          <li key={entry.revision}>
            <EntryCard entry={entry} newest={revision} />
          </li>
        ))}
      </ol>
      {data?.entries.length === 0 && <p class="hint">{text.none}</p>}
      {data?.hasMore && pages < 10 && (
        <button type="button" class="quiet" onClick={() => setPages(pages + 1)}>
          {text.earlier}
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

  const operation = editsWords.operations[entry.operation] ?? entry.operation;
  return (
    <article class="review" aria-label={text.revision(entry.revision)}>
      <p>
        <strong>{exact(entry.revision)}</strong> {operation}
        {entry.reversed !== undefined && ` ${text.reversed(entry.reversed)}`}
      </p>
      <p class="hint">
        {entry.own ? text.you : text.others} · {when(entry.time / 1000)}
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
          {differences === undefined ? text.show : text.hide}
        </button>
        {entry.revision !== newest && (
          <ConfirmButton
            label={text.restore}
            name={text.revisionToRestore(entry.revision)}
            question={text.restoreQuestion}
            onConfirm={() => run(() => edits.restore(entry.revision))}
          />
        )}
      </div>
      <Failure error={error} />
      {differences?.map((one) => (
        <BlockDifference key={one.blockId} difference={one} />
      ))}
      {differences?.length === 0 && <p class="hint">{text.noText}</p>}
    </article>
  );
}

function BlockDifference({ difference }: { difference: Difference }) {
  const { before, after } = difference;
  if (before === undefined) return <ins>{after}</ins>;
  if (after === undefined) return <del>{before}</del>;
  if (before === after) return <p class="said">{after} {text.moved}</p>;
  return <DifferenceText before={before} after={after} />;
}
