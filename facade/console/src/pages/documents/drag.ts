// Blocks that are dragged to another place.
import { signal } from "@preact/signals";

import type { Edits } from "./edits";

/** Id of the block that is being dragged, "" if none is. */
export const dragged = signal("");

/** Return the listeners of a block onto which another can be dropped. */
export function dropTarget(idOf: () => string, edits: Edits) {
  function isAbove(event: DragEvent): boolean {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return event.clientY < box.top + box.height / 2;
  }
  return {
    onDragOver(event: DragEvent): void {
      if (dragged.value === "" || dragged.value === idOf()) return;
      event.preventDefault();
      (event.currentTarget as HTMLElement).dataset["drop"] = isAbove(event) ? "above" : "below";
    },
    onDragLeave(event: DragEvent): void {
      delete (event.currentTarget as HTMLElement).dataset["drop"];
    },
    onDrop(event: DragEvent): void {
      delete (event.currentTarget as HTMLElement).dataset["drop"];
      const [moved, id] = [dragged.value, idOf()];
      if (moved === "" || moved === id) return;
      event.preventDefault();
      dragged.value = "";
      void edits.attempt(() => edits.moveBeside(moved, id, isAbove(event)));
    },
  };
}
