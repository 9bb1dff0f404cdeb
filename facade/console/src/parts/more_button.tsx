import type { Paged } from "./paged";

/** A button that loads the next page of a list, where there is one. */
export function MoreButton<T>({ list, label }: { list: Paged<T>; label: string }) {
  if (list.more === undefined) return null;
  return (
    <button type="button" class="quiet" disabled={list.isLoading} onClick={list.more}>
      {label}
    </button>
  );
}
