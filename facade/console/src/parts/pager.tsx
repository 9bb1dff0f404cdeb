// Pages of a list, one shown at a time: however long the list is, the page stays as light.
import { useState } from "preact/hooks";

import { useLoaded } from "./loading";
import { words } from "../words/common";

export interface CursorPage<T> {
  items: readonly T[];
  /** What the next page is asked for with; "" where there is none. */
  next: string;
}

export interface Pages<T> {
  items: readonly T[];
  error: unknown;
  isLoaded: boolean;
  isLoading: boolean;
  /** Number of the page, from 1. */
  number: number;
  /** Go to a page; undefined where there is none. */
  forward: (() => void) | undefined;
  back: (() => void) | undefined;
  reload: () => void;
}

/** Load one page of a list at a time; the first again when `keys` change. */
export function usePages<T>(
  load: (cursor: string, signal: AbortSignal) => Promise<CursorPage<T>>,
  keys: readonly unknown[],
): Pages<T> {
  const key = JSON.stringify(keys);
  const [way, setWay] = useState<{ key: string; cursors: readonly string[] }>({ key, cursors: [""] });
  const cursors = way.key === key ? way.cursors : [""];
  const cursor = cursors.at(-1) ?? "";
  const { data, error, isLoading, reload } = useLoaded(
    async (signal) => ({ ...(await load(cursor, signal)), key, cursor }),
    [key, cursor],
  );
  const isCurrent = data?.key === key && data.cursor === cursor;
  const next = isCurrent ? data.next : "";
  return {
    items: data?.key === key ? data.items : [],
    error,
    isLoaded: isCurrent,
    isLoading,
    number: cursors.length,
    forward: next ? () => setWay({ key, cursors: [...cursors, next] }) : undefined,
    back: cursors.length > 1 ? () => setWay({ key, cursors: cursors.slice(0, -1) }) : undefined,
    reload,
  };
}

export function Pager<T>({ pages, label }: { pages: Pages<T>; label: string }) {
  if (pages.forward === undefined && pages.back === undefined) return null;
  return (
    <nav class="pager" aria-label={label}>
      <button type="button" class="quiet" disabled={!pages.back} onClick={pages.back}>
        {words.pager.back}
      </button>
      <span>{words.pager.page(pages.number)}</span>
      <button type="button" class="quiet" disabled={!pages.forward} onClick={pages.forward}>
        {words.pager.forward}
      </button>
    </nav>
  );
}
