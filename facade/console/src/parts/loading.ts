// Data that a page loads when it is shown.
import { useCallback, useEffect, useState } from "preact/hooks";

export interface Loaded<T> {
  data: T | undefined;
  error: unknown;
  isLoading: boolean;
  /** Load once more; what was loaded stays until then. */
  reload: () => void;
}

/** Load data when a page appears and whenever `keys` change; an outdated load is aborted. */
export function useLoaded<T>(
  load: (signal: AbortSignal) => Promise<T>,
  keys: readonly unknown[],
): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, "reload">>({
    data: undefined,
    error: undefined,
    isLoading: true,
  });
  const [count, setCount] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    setState((last) => ({ ...last, isLoading: true }));
    load(controller.signal).then(
      (data) => {
        if (!controller.signal.aborted) setState({ data, error: undefined, isLoading: false });
      },
      (error: unknown) => {
        if (!controller.signal.aborted) {
          setState((last) => ({ data: last.data, error, isLoading: false }));
        }
      },
    );
    return () => controller.abort();
  }, [...keys, count]);
  return { ...state, reload: useCallback(() => setCount((last) => last + 1), []) };
}
