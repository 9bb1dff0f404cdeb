// Texts found in the document, one after the other, and replaced.
import { useEffect, useRef, useState } from "preact/hooks";

import { Failure } from "../../parts/failure";
import { useActions } from "../../parts/actions";
import { findWords as text } from "../../words/documents/find";
import { useDocument } from "./context";
import { holds } from "./types";

interface Place {
  blockId: string;
  offset: number;
  snippet: string;
}

interface Places {
  places: Place[];
  hasMore: boolean;
}

export function FindBar({ onClose }: { onClose: () => void }) {
  const { document, edits } = useDocument();
  const { error, run } = useActions();
  const [query, setQuery] = useState("");
  const [by, setBy] = useState("");
  const [isRegex, setRegex] = useState(false);
  const [found, setFound] = useState<Places>();
  const [at, setAt] = useState(0);
  const [replaced, setReplaced] = useState<string>();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);

  async function find(): Promise<void> {
    setReplaced(undefined);
    const body = isRegex ? { query, regex: true } : { query };
    const places = await document.session.call<Places>("doc/find", () => body);
    setFound(places);
    setAt(0);
    if (places.places[0]) reveal(places.places[0]);
  }

  /** Select the block that has a place, and scroll to it; the focus stays here. */
  function reveal({ blockId }: Place): void {
    const id = document.order.value.find((one) =>
      holds(document.entry(one).state.value?.block, blockId),
    );
    if (id === undefined) return;
    document.select(id);
    window.document.querySelector(`[data-block="${CSS.escape(id)}"]`)?.scrollIntoView({ block: "center" });
  }

  function step(by: number): void {
    const places = found?.places ?? [];
    if (places.length === 0) return;
    const next = (at + by + places.length) % places.length;
    setAt(next);
    reveal(places[next]!);
  }

  async function replace(blockId?: string): Promise<void> {
    const count = await edits.replaceText(query, by, blockId);
    await find();
    setReplaced(text.replaced(count));
  }

  const places = found?.places ?? [];
  const current = places[at];
  return (
    <form
      class="find-bar"
      role="search"
      aria-label={text.title}
      onSubmit={(event) => {
        event.preventDefault();
        void run(find);
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") onClose();
      }}
    >
      <div class="actions">
        <label class="inline">
          {text.find}
          <input
            ref={field}
            value={query}
            maxLength={1000}
            onInput={(event) => {
              setQuery(event.currentTarget.value);
              setFound(undefined);
            }}
          />
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={isRegex}
            onChange={(event) => {
              setRegex(event.currentTarget.checked);
              setFound(undefined);
            }}
          />
          {text.regex}
        </label>
        <button type="submit" disabled={query === ""}>
          {text.find}
        </button>
        <button type="button" class="quiet" disabled={places.length === 0} onClick={() => step(-1)}>
          {text.previous}
        </button>
        <button type="button" class="quiet" disabled={places.length === 0} onClick={() => step(1)}>
          {text.next}
        </button>
        <button type="button" class="quiet" onClick={onClose}>
          {text.close}
        </button>
      </div>
      {!isRegex && (
        <div class="actions">
          <label class="inline">
            {text.by}
            <input value={by} maxLength={1000} onInput={(event) => setBy(event.currentTarget.value)} />
          </label>
          <button
            type="button"
            class="quiet"
            disabled={current === undefined}
            onClick={() => void run(() => replace(current!.blockId))}
          >
            {text.replaceHere}
          </button>
          <button
            type="button"
            class="quiet"
            disabled={places.length === 0}
            onClick={() => void run(() => replace())}
          >
            {text.replaceAll}
          </button>
        </div>
      )}
      <p class="hint" role="status">
        {replaced}{" "}
        {found !== undefined &&
          (current === undefined
            ? text.none
            : text.place(at + 1, places.length, found.hasMore, current.snippet))}
      </p>
      <Failure error={error} />
    </form>
  );
}
