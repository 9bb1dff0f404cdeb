import { useLocation } from "preact-iso";

import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { when } from "../../parts/formats";
import { MoreButton } from "../../parts/more_button";
import { usePaged } from "../../parts/paged";
import { useTitle } from "../../parts/title";
import { memoryWords } from "../../words/memory";
import { shellWords } from "../../words/shell";
import { Details } from "./details";
import { listMemories } from "./memories";
import { Profile } from "./profile";

const text = memoryWords;

export default function Memory() {
  const { query } = useLocation();
  const id = query["id"];
  useTitle(id ?? text.title);
  if (id !== undefined) return <Details key={id} id={id} />;
  return (
    <>
      <h1>{text.title}</h1>
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
      <h2 id="memories">{text.conversations}</h2>
      <Failure error={memories.error} />
      {memories.items.length === 0 && memories.isLoaded && (
        <Empty title={text.none}>
          <p>
            {text.noneHint} <a href="/console">{shellWords.toChat}</a>
          </p>
        </Empty>
      )}
      <ul class="cards" aria-label={text.conversations}>
        {memories.items.map((memory) => (
          <li key={memory.id}>
            <article>
              <h3>
                <a href={addressOf(memory.id)}>{memory.id}</a>
              </h3>
              <p class="hint">
                {text.turnsUsed(memory.turns, when(memory.updated_at))} · {text.states[memory.state]}
              </p>
            </article>
          </li>
        ))}
      </ul>
      <MoreButton list={memories} label={text.more} />
    </section>
  );
}

function addressOf(id: string): string {
  return `/console/memory?${new URLSearchParams({ id })}`;
}
