// Calls of tools in a logged answer.
import { requestsWords } from "../../words/requests";
import type { LoggedBody } from "./log";
import { eventsOf } from "./bodies";

interface Call {
  name: string;
  /** What ran it, by the type of its block: the caller's program, the gateway or the provider. */
  kind: string;
}

export function ToolCalls({ body }: { body: LoggedBody | null }) {
  const calls = body === null ? [] : callsIn(body.content);
  if (calls.length === 0) return null;
  return (
    <>
      <h3>{requestsWords.tools}</h3>
      <ol class="calls" aria-label={requestsWords.tools}>
        {calls.map(({ name, kind }, index) => (
          <li key={index}>
            <code>{name}</code> <span class="hint">{kind}</span>
          </li>
        ))}
      </ol>
    </>
  );
}

const MAX_CALLS = 100;
const CALL_TYPES = /^(tool_use|server_tool_use|mcp_tool_use|function_call|custom_tool_call|mcp_call|function|\w+_call)$/;

/** Return the calls in an answer of any dialect, whole or streamed, each once. */
export function callsIn(content: string): Call[] {
  const calls = new Map<string, Call>();
  const waiting: unknown[] = eventsOf(content).reverse();
  while (waiting.length > 0 && calls.size < MAX_CALLS) {
    const value = waiting.pop();
    if (Array.isArray(value)) {
      for (let index = value.length - 1; index >= 0; index -= 1) waiting.push(value[index]);
    } else if (typeof value === "object" && value !== null) {
      const object = value as Record<string, unknown>;
      const call = callOf(object);
      if (call !== undefined) {
        calls.set(String(object["id"] ?? object["call_id"] ?? calls.size), call);
        continue;
      }
      waiting.push(...Object.values(object).reverse());
    }
  }
  return [...calls.values()];
}

function callOf(object: Record<string, unknown>): Call | undefined {
  const { type, name } = object;
  const inner = object["function"] as Record<string, unknown> | undefined;
  const called = inner?.["name"] ?? name;
  if (typeof type !== "string" || !CALL_TYPES.test(type)) return undefined;
  if (typeof called === "string" && called !== "") return { name: called, kind: type };
  // Built-in tools of responses have no name beside their type.
  return type.endsWith("_call") && type !== "function_call" ? { name: type, kind: "" } : undefined;
}
