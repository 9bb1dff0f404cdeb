// A search through the archived turns of a conversation.
import { useState } from "preact/hooks";

import { Failure } from "../../parts/failure";
import { when } from "../../parts/formats";
import { memoryWords } from "../../words/memory";
import { type Snippet, search } from "./memories";

const text = memoryWords.search;

export function Search({ id }: { id: string }) {
  const [query, setQuery] = useState("");
  const [found, setFound] = useState<readonly Snippet[]>();
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      setFound(await search(id, query));
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  }

  return (
    <section aria-labelledby="search">
      <h2 id="search">{text.title}</h2>
      <form class="actions" role="search" onSubmit={submit}>
        <input
          type="search"
          aria-label={text.label}
          required
          value={query}
          onInput={(event) => setQuery(event.currentTarget.value)}
        />
        <button disabled={isBusy}>{text.title}</button>
      </form>
      <Failure error={error} />
      <div role="status">
        {found?.length === 0 && <p class="hint">{text.none}</p>}
        {found !== undefined && found.length > 0 && (
          <ol aria-label={text.results}>
            {found.map((snippet) => (
              <li key={snippet.id}>
                <p>{snippet.text}</p>
                <p class="hint">
                  {text.of(snippet.id, when(snippet.created_at), snippet.score)}
                </p>
              </li>
            ))}
          </ol>
        )}
      </div>
    </section>
  );
}
