// Which version of a turn is shown: "‹ 2 / 3 ›".
import { chatWords } from "../../words/chat";

export function VersionSwitch({
  name,
  number,
  count,
  isBusy,
  onShow,
}: {
  /** The name of the thing that has versions. */
  name: string;
  /** From 1 on. */
  number: number;
  count: number;
  isBusy: boolean;
  onShow: (number: number) => void;
}) {
  const text = chatWords.versions;
  return (
    <div class="versions" role="group" aria-label={text.of(name)}>
      <button
        type="button"
        class="quiet small"
        aria-label={text.previous}
        disabled={isBusy || number === 1}
        onClick={() => onShow(number - 1)}
      >
        ‹
      </button>
      <span aria-label={text.place(number, count)} role="img">
        {number} / {count}
      </span>
      <button
        type="button"
        class="quiet small"
        aria-label={text.next}
        disabled={isBusy || number === count}
        onClick={() => onShow(number + 1)}
      >
        ›
      </button>
    </div>
  );
}
