// A call of one of the user's tools, and its result, which the user enters.
import { useState } from "preact/hooks";

import { chatWords } from "../../words/chat";
import type { ToolCall } from "./conversation";

export function ToolCallView({
  call,
  onResult,
}: {
  call: ToolCall;
  onResult?: (callId: string, result: string) => void;
}) {
  const [result, setResult] = useState("");
  const text = chatWords.tools;
  const hasResult = call.result !== undefined;
  return (
    <section class="tool-call" aria-label={text.callOf(call.name)}>
      <details open={!hasResult}>
        <summary>
          {hasResult ? text.called : text.calls} <code>{call.name}</code>
        </summary>
        <pre tabIndex={0}>{readable(call.arguments)}</pre>
        {hasResult && (
          <>
            <p>{text.result}</p>
            <pre tabIndex={0}>{call.result}</pre>
          </>
        )}
      </details>
      {call.result === undefined && onResult && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            onResult(call.id, result);
          }}
        >
          <label>
            {text.resultOf(call.name)}
            <textarea
              class="code"
              rows={2}
              value={result}
              onInput={(event) => setResult(event.currentTarget.value)}
            />
          </label>
          <button>{text.giveResult}</button>
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
