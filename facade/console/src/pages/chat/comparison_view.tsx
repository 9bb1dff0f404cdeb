// Answers of several models beside one another.
import { chatWords } from "../../words/chat";
import { type Column, type Comparison, choose } from "./comparison";
import { AnswerBody } from "./turn_view";

export function ComparisonView({
  comparison,
  isBusy,
  onRepeat,
  onAskAgain,
}: {
  comparison: Comparison;
  isBusy: boolean;
  onRepeat: () => void;
  onAskAgain: (column: Column) => void;
}) {
  const { columns } = comparison;
  const hasNone = columns.every(({ branch }) => branch === "");
  return (
    <section class="comparison" aria-label={chatWords.comparison.title}>
      <div class="columns" style={{ "--count": columns.length }}>
        {columns.map((column) => (
          <Answer
            key={column.model}
            column={column}
            onAskAgain={isBusy || hasNone ? undefined : () => onAskAgain(column)}
          />
        ))}
      </div>
      {!isBusy && hasNone && (
        <button type="button" class="quiet small" onClick={onRepeat}>
          {chatWords.comparison.repeat}
        </button>
      )}
    </section>
  );
}

function Answer({ column, onAskAgain }: { column: Column; onAskAgain: (() => void) | undefined }) {
  const { model, turn, branch } = column;
  return (
    <article
      class="turn"
      aria-label={chatWords.comparison.answer(model)}
      aria-busy={turn.state === "streaming"}
    >
      <h2>{model}</h2>
      <AnswerBody turn={turn} />
      {branch === "" && onAskAgain && (
        <button type="button" class="quiet" onClick={onAskAgain}>
          {chatWords.comparison.askAgain}
          <span class="visually-hidden"> {chatWords.comparison.of(model)}</span>
        </button>
      )}
      {branch !== "" && (
        <button type="button" class="quiet" onClick={() => void choose(column)}>
          {chatWords.comparison.choose}
          <span class="visually-hidden"> {chatWords.comparison.of(model)}</span>
        </button>
      )}
    </article>
  );
}
