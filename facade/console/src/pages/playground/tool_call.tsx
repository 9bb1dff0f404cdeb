// A call of one of the user's tools, and its result, which the user enters.
import { useState } from "preact/hooks";

import type { ToolCall } from "./conversation";

export function ToolCallView({
  call,
  onResult,
}: {
  call: ToolCall;
  onResult?: (callId: string, result: string) => void;
}) {
  const [result, setResult] = useState("");
  return (
    <section class="tool-call" aria-label={`Call of ${call.name}`}>
      <p>
        Calls <code>{call.name}</code>
      </p>
      <pre tabIndex={0}>{readable(call.arguments)}</pre>
      {call.result !== undefined && (
        <>
          <p>Result</p>
          <pre tabIndex={0}>{call.result}</pre>
        </>
      )}
      {call.result === undefined && onResult && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            onResult(call.id, result);
          }}
        >
          <label>
            Result of {call.name}
            <textarea
              class="code"
              rows={2}
              value={result}
              onInput={(event) => setResult(event.currentTarget.value)}
            />
          </label>
          <button>Return the result</button>
        </form>
      )}
    </section>
  );
}

function readable(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
