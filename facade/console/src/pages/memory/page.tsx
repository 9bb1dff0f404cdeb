import { useLocation } from "preact-iso";

import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { when } from "../../parts/formats";
import { MoreButton } from "../../parts/more_button";
import { usePaged } from "../../parts/paged";
import { useTitle } from "../../parts/title";
import { Details } from "./details";
import { listMemories } from "./memories";
import { Profile } from "./profile";

export default function Memory() {
  const { query } = useLocation();
  const id = query["id"];
  useTitle(id ?? "Memory");
  if (id !== undefined) return <Details key={id} id={id} />;
  return (
    <>
      <h1>Memory</h1>
      <List />
      <Profile />
    </>
  );
}

function List() {
  const memories = usePaged(async (page, signal) => {
    const { data, next_page } = await listMemories(page, signal);
    return { items: data, next: next_page ?? "" };
  }, []);
  return (
    <section aria-labelledby="memories">
      <h2 id="memories">Conversations</h2>
      <Failure error={memories.error} />
      {memories.items.length === 0 && memories.isLoaded && (
        <Empty title="Nothing is remembered yet">
          <p>
            Send requests with a <code>memory_id</code> of your choice, in the{" "}
            <a href="/console">playground</a> or from your program: the gateway keeps the
            conversation under it.
          </p>
        </Empty>
      )}
      <ul class="cards" aria-label="Conversations">
        {memories.items.map((memory) => (
          <li key={memory.id}>
            <article>
              <h3>
                <a href={addressOf(memory.id)}>{memory.id}</a>
              </h3>
              <p class="hint">
                {memory.turns === 1 ? "1 turn" : `${memory.turns} turns`} · used{" "}
                {when(memory.updated_at)} · {memory.state}
              </p>
            </article>
          </li>
        ))}
      </ul>
      <MoreButton list={memories} label="More conversations" />
    </section>
  );
}

function addressOf(id: string): string {
  return `/console/memory?${new URLSearchParams({ id })}`;
}
