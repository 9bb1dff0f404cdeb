// A block that was changed here and by others: both texts, and which of them is to stay.
import { useDocument } from "../context";
import { Content } from "../kinds/content";
import type { BlockState } from "../types";

export function Conflict({ id, state }: { id: string; state: BlockState | undefined }) {
  const { sync } = useDocument();
  return (
    <div class="failure" role="alert">
      <p>
        {state === undefined
          ? "Somebody deleted this block. What you typed is still here: save it as a new block, or give it up."
          : "Somebody changed this block while you were editing it. This is what it is now; what you typed is still here, below."}
      </p>
      {state !== undefined && (
        <div class="newer">
          <Content state={state} />
        </div>
      )}
      <div class="actions">
        <button type="button" onClick={() => sync.settle(id, true)}>
          {state === undefined ? "Save as a new block" : "Save mine over it"}
        </button>
        <button type="button" class="quiet" onClick={() => sync.settle(id, false)}>
          Give mine up
        </button>
      </div>
    </div>
  );
}
