// One remembered conversation: its summary, a search through it, and its turns.
import { useLocation } from "preact-iso";

import { ConfirmButton } from "../../parts/confirm";
import { Failure } from "../../parts/failure";
import { when } from "../../parts/formats";
import { useLoaded } from "../../parts/loading";
import { Markdown } from "../../parts/markdown";
import { MoreButton } from "../../parts/more_button";
import { usePaged } from "../../parts/paged";
import { deleteMemory, getMemory, listTurns } from "./memories";
import { Search } from "./search";
import { TurnView } from "./turn";

export function Details({ id }: { id: string }) {
  const { route } = useLocation();
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
        <a href="/console/memory">All conversations</a>
      </p>
      <h1>{id}</h1>
      <Failure error={memory.error} />
      {memory.data && (
        <>
          <p class="hint">
            {memory.data.turns === 1 ? "1 turn" : `${memory.data.turns} turns`} since{" "}
            {when(memory.data.created_at)} · {memory.data.state}
            {memory.data.pending > 0 && ` · ${memory.data.pending} waiting to be processed`}
            {memory.data.degraded && " · the last summary was made without a model"}
          </p>
          <p class="actions">
            <ConfirmButton
              label="Delete conversation"
              question={`Delete the conversation ${id}, with its turns and its summary?`}
              onConfirm={async () => {
                await deleteMemory(id);
                route("/console/memory");
              }}
            />
          </p>
          <h2>Summary</h2>
          {memory.data.summary === null ? (
            <p class="hint">There is none: all turns are still sent as they were.</p>
          ) : (
            <Markdown text={memory.data.summary} />
          )}
          <Search id={id} />
          <h2>Turns, newest first</h2>
          <Failure error={turns.error} />
          <ol class="turns" aria-label="Turns">
            {turns.items.map((turn) => (
              <li key={turn.id}>
                <TurnView turn={turn} />
              </li>
            ))}
          </ol>
          <MoreButton list={turns} label="Earlier turns" />
        </>
      )}
    </>
  );
}
