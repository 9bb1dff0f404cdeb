// A turn of a remembered conversation.
import { when } from "../../parts/formats";
import { Markdown } from "../../parts/markdown";
import { memoryWords } from "../../words/memory";
import type { Part, Turn } from "./memories";

const text = memoryWords;

export function TurnView({ turn }: { turn: Turn }) {
  return (
    <article aria-label={text.turn(turn.id)}>
      <p class="hint">
        {text.turn(turn.id)} · {when(turn.created_at)}
        {turn.open && ` · ${text.open}`}
      </p>
      {turn.messages.map((message) => (
        <div class={`message ${message.role === "user" ? "user" : "assistant"}`}>
          <p class="role">{message.name ?? text.who[message.role === "user" ? "user" : "assistant"]}</p>
          {message.content.map((part) => (
            <PartView part={part} />
          ))}
        </div>
      ))}
    </article>
  );
}

function PartView({ part }: { part: Part }) {
  switch (part.type) {
    case "text":
      return <Markdown text={part.text ?? ""} />;
    case "refusal":
      return <Markdown text={part.refusal ?? ""} />;
    case "image":
    case "document":
    case "audio":
    case "video":
      return (
        <p class="hint">
          {part.type}: {part.name ?? part.description ?? part.file_id ?? part.url ?? part.mime_type}
        </p>
      );
    case "tool_use":
      return <Folded title={text.call(part.name ?? "")} value={part.input} />;
    case "tool_result":
      return (
        <details>
          <summary>{part.is_error ? text.toolError : text.toolResult}</summary>
          {(part.content ?? []).map((inner) => (
            <PartView part={inner} />
          ))}
        </details>
      );
    default:
      return <Folded title={part.type} value={part} />;
  }
}

function Folded({ title, value }: { title: string; value: unknown }) {
  return (
    <details>
      <summary>{title}</summary>
      <pre tabIndex={0}>{typeof value === "string" ? value : JSON.stringify(value, null, 2)}</pre>
    </details>
  );
}
