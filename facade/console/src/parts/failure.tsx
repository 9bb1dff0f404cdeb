import { ApiError } from "../api/client";
import { words } from "../words/common";

/** Shows what failed, why, and under which request id it stands in the log. */
export function Failure({ error }: { error: unknown }) {
  if (error === undefined || error === null) return null;
  const message = error instanceof Error ? error.message : String(error);
  return (
    <div class="failure" role="alert">
      <p>{message}</p>
      {error instanceof ApiError && error.requestId && (
        <p class="hint">
          {words.requestId} <code>{error.requestId}</code>
          {error.code && (
            <>
              {" "}
              · <code>{error.code}</code>
            </>
          )}
        </p>
      )}
    </div>
  );
}
