// A chat as Markdown.
import { titleOf } from "../../chats/chats";
import { type Conversation, type Item, listItems } from "../../chats/conversations";
import { isObject } from "../chat/settings";

const SPEAKERS: Readonly<Record<string, string>> = { user: "You", assistant: "Answer" };

/** Return a chat as Markdown: texts as they are, calls and results of tools as code. */
export async function exported(chat: Conversation): Promise<string> {
  const items = await listItems(chat.id);
  return [`# ${titleOf(chat)}`, ...items.map(written)].filter(Boolean).join("\n\n") + "\n";
}

function written(item: Item): string {
  switch (item["type"]) {
    case "message": {
      const role = String(item["role"]);
      return `## ${SPEAKERS[role] ?? role}\n\n${texts(item["content"])}`;
    }
    case "function_call":
      return `Calls \`${String(item["name"])}\`:\n\n${code(item["arguments"])}`;
    case "function_call_output":
      return `Result:\n\n${code(item["output"])}`;
    default:
      return "";
  }
}

function texts(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .filter(isObject)
    .map((part) => {
      if (typeof part["text"] === "string") return part["text"];
      return part["file_id"] ? `[${String(part["file_id"])}]` : "";
    })
    .join("\n\n");
}

function code(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  // A fence is longer than any in the text.
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}
