// A block that was changed here and by others: both texts, and which of them is to stay.
import { blocksWords } from "../../../words/documents/blocks";
import { useDocument } from "../context";
import { Content } from "../kinds/content";
import type { BlockState } from "../types";

const text = blocksWords.conflicts;

export function Conflict({ id, state }: { id: string; state: BlockState | undefined }) {
  const { sync } = useDocument();
  return (
    <div class="failure" role="alert">
      <p>{state === undefined ? text.deleted : text.changed}</p>
      {state !== undefined && (
        <div class="newer">
          <Content state={state} />
        </div>
      )}
      <div class="actions">
        <button type="button" onClick={() => sync.settle(id, true)}>
          {state === undefined ? text.saveAsNew : text.saveMine}
        </button>
        <button type="button" class="quiet" onClick={() => sync.settle(id, false)}>
          {text.giveUp}
        </button>
      </div>
    </div>
  );
}
