// Lists that come a page at a time.
import { useEffect, useState } from "preact/hooks";

import { useLoaded } from "./loading";

interface LoadedPage<T> {
  items: readonly T[];
  /** What the next page is asked for with; "" where there is none. */
  next: string;
}

export interface Paged<T> {
  items: readonly T[];
  error: unknown;
  /** Whether the first page has come. */
  isLoaded: boolean;
  isLoading: boolean;
  /** Load the next page; undefined where there is none. */
  more: (() => void) | undefined;
  /** Load the list anew, from its first page. */
  reload: () => void;
}

/** Load a list when a page appears and whenever `keys` change; `load` gets "" for the first page. */
export function usePaged<T>(
  load: (page: string, signal: AbortSignal) => Promise<LoadedPage<T>>,
  keys: readonly unknown[],
): Paged<T> {
  const key = JSON.stringify(keys);
  const [asked, setAsked] = useState({ key, page: "", count: 0 });
  const [held, setHeld] = useState<{ key: string; items: readonly T[] }>({ key, items: [] });
  const page = asked.key === key ? asked.page : "";
  const { data, error, isLoading } = useLoaded(
    async (signal) => ({ ...(await load(page, signal)), key, page }),
    [key, page, asked.count],
  );
  useEffect(() => {
    if (data === undefined) return;
    setHeld((earlier) => ({
      key: data.key,
      items: data.page === "" ? data.items : [...earlier.items, ...data.items],
    }));
  }, [data]);
  const isCurrent = data?.key === key;
  const next = isCurrent ? data.next : "";
  const ask = (from: string): void => setAsked(({ count }) => ({ key, page: from, count: count + 1 }));
  return {
    items: held.key === key ? held.items : [],
    error,
    isLoaded: isCurrent,
    isLoading,
    more: next ? () => ask(next) : undefined,
    reload: () => ask(""),
  };
}
