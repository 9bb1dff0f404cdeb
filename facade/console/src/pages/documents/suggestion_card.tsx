// A pending suggestion: who made it, what it would change, and the decision about it.
import type { ComponentChildren } from "preact";

import { useActions } from "../../parts/actions";
import { Failure } from "../../parts/failure";
import { when } from "../../parts/formats";
import { reviewsWords as text } from "../../words/documents/reviews";
import { useDocument } from "./context";
import { DifferenceText } from "./difference";
import { authorName } from "./reviews";
import type { SuggestedBlock, Suggestion } from "./suggestions";

/** Shows a suggestion in the list of all. */
export function SuggestionCard({ suggestion }: { suggestion: Suggestion }) {
  const { document } = useDocument();
  const { blocks, references, style, properties } = suggestion;
  const order = document.order.value;
  const place = blocks.flatMap((one) => [one.blockId, one.afterId ?? ""]).find((id) => order.includes(id));
  return (
    <article class="review suggestion" aria-label={text.suggestionOf(authorName(suggestion))}>
      <Proposer suggestion={suggestion}>
        {" "}
        · <code>{suggestion.endpoint}</code>
      </Proposer>
      {blocks.map((block) => (
        <BlockDifference key={block.blockId} block={block} />
      ))}
      {references.length > 0 && <p class="hint">{text.references(references)}</p>}
      {style && <p class="hint">{text.style}</p>}
      {properties && <p class="hint">{text.properties}</p>}
      <Decision suggestion={suggestion}>
        {place !== undefined && (
          <button
            type="button"
            class="quiet small"
            onClick={() => {
              document.wanted.value = place;
            }}
          >
            {text.show}
          </button>
        )}
      </Decision>
    </article>
  );
}

/** Shows a suggestion in the text, below the last of its blocks, which show what it would change. */
export function SuggestionInText({
  id,
  unmarked,
}: {
  id: string;
  /** Ids of the changed blocks in whose texts the changes are not marked. */
  unmarked: readonly string[];
}) {
  const { suggestions } = useDocument();
  const suggestion = suggestions.pending.value.find((one) => one.id === id);
  if (suggestion === undefined) return null;
  return (
    <div class="suggested" role="group" aria-label={text.inText(authorName(suggestion))}>
      <Proposer suggestion={suggestion} />
      {!suggestion.stale &&
        suggestion.blocks
          .filter(({ blockId }) => unmarked.includes(blockId))
          .map((block) => <BlockDifference key={block.blockId} block={block} />)}
      <Decision suggestion={suggestion} />
    </div>
  );
}

function Proposer({
  suggestion,
  children,
}: {
  suggestion: Suggestion;
  children?: ComponentChildren;
}) {
  return (
    <p class="hint">
      {authorName(suggestion)} · {when(suggestion.time / 1000)}
      {children}
    </p>
  );
}

function BlockDifference({ block: { before, after } }: { block: SuggestedBlock }) {
  if (before !== undefined && after !== undefined && before !== after) {
    return <DifferenceText before={before} after={after} />;
  }
  return (
    <div>
      {before !== undefined && <del>{before}</del>}
      {after !== undefined && <ins>{after}</ins>}
    </div>
  );
}

function Decision({
  suggestion: { id, own, stale },
  children,
}: {
  suggestion: Suggestion;
  children?: ComponentChildren;
}) {
  const { suggestions } = useDocument();
  const { error, run } = useActions();
  return (
    <>
      {stale && <p class="hint">{text.stale}</p>}
      <Failure error={error} />
      <div class="actions">
        <button type="button" class="small" disabled={stale} onClick={() => void run(() => suggestions.accept(id))}>
          {text.accept}
        </button>
        <button type="button" class="quiet small" onClick={() => void run(() => suggestions.reject(id))}>
          {own ? text.withdraw : text.reject}
        </button>
        {children}
      </div>
    </>
  );
}
