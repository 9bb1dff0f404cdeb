// Actions whose failure is shown beside them.
import { useState } from "preact/hooks";

/** Return why the last action failed, if it did, and the function that performs one. */
export function useActions() {
  const [error, setError] = useState<unknown>();

  async function run(act: () => Promise<unknown>): Promise<void> {
    setError(undefined);
    try {
      await act();
    } catch (failure) {
      setError(failure);
    }
  }

  return { error, run };
}
