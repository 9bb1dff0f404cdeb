// One remembered conversation: its summary, a search through it, and its turns.
import { useLocation } from "preact-iso";

import { useActions } from "../../parts/actions";
import { ConfirmButton } from "../../parts/confirm";
import { Failure } from "../../parts/failure";
import { when } from "../../parts/formats";
import { useLoaded } from "../../parts/loading";
import { Markdown } from "../../parts/markdown";
import { MoreButton } from "../../parts/more_button";
import { usePaged } from "../../parts/paged";
import { memoryWords } from "../../words/memory";
import { continueInChat } from "./continue";
import { deleteMemory, getMemory, listTurns } from "./memories";
import { Search } from "./search";
import { TurnView } from "./turn";

const text = memoryWords;

export function Details({ id }: { id: string }) {
  const { route } = useLocation();
  const { error, run } = useActions();
  const memory = useLoaded((signal) => getMemory(id, signal), [id]);
  const turns = usePaged(
    async (page, signal) => {
      const { data, next_page } = await listTurns(id, page, signal);
      return { items: data, next: next_page ?? "" };
    },
    [id],
  );
  return (
    <>
      <p>
        <a href="/console/memory">{text.all}</a>
      </p>
      <h1>{id}</h1>
      <Failure error={memory.error} />
      {memory.data && (
        <>
          <p class="hint">
            {text.turnsSince(memory.data.turns, when(memory.data.created_at))} ·{" "}
            {text.states[memory.data.state]}
            {memory.data.pending > 0 && ` · ${text.pending(memory.data.pending)}`}
            {memory.data.degraded && ` · ${text.degraded}`}
          </p>
          <p class="actions">
            <button
              type="button"
              onClick={() =>
                void run(async () => {
                  await continueInChat(id);
                  route("/console");
                })
              }
            >
              {text.continue}
            </button>
            <ConfirmButton
              label={text.remove}
              question={text.removeQuestion(id)}
              onConfirm={async () => {
                await deleteMemory(id);
                route("/console/memory");
              }}
            />
          </p>
          <Failure error={error} />
          <h2>{text.summary}</h2>
          {memory.data.summary === null ? (
            <p class="hint">{text.noSummary}</p>
          ) : (
            <Markdown text={memory.data.summary} />
          )}
          <Search id={id} />
          <h2>{text.newestFirst}</h2>
          <Failure error={turns.error} />
          <ol class="turns" aria-label={text.turns}>
            {turns.items.map((turn) => (
              <li key={turn.id}>
                <TurnView turn={turn} />
              </li>
            ))}
          </ol>
          <MoreButton list={turns} label={text.earlier} />
        </>
      )}
    </>
  );
}
