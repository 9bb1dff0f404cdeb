// A logged request as a conversation of the chat.
import type { AssistantTurn, Block, Turn, UserTurn } from "../chat/conversation";
import { settled } from "../chat/history";
import { ended } from "../chat/run";
import { DEFAULTS, type DialectName, type Settings } from "../chat/settings";
import { EMPTY, change, setMessage, showNewChat } from "../chat/store";
import { parsed } from "./bodies";
import type { RequestDetails } from "./log";

type Json = Record<string, unknown>;

export interface LoggedChat {
  settings: Partial<Settings>;
  turns: Turn[];
  /** The newest message, to be sent again. */
  text: string;
  /** Parts that are no text, such as images, which stay behind. */
  leftOut: number;
}

const DIALECTS: readonly [RegExp, DialectName][] = [
  [/\/chat\/completions$/, "chat"],
  [/\/messages$/, "messages"],
  [/\/responses$/, "responses"],
];

/** Return the conversation of a request; undefined where its body is not there whole, or is none. */
export function readChat(request: RequestDetails): LoggedChat | undefined {
  const dialect = DIALECTS.find(([path]) => path.test(request.endpoint))?.[1];
  const body = request.request_body;
  if (dialect === undefined || body === null || body.truncated) return undefined;
  const fields = parsed(body.content);
  if (typeof fields !== "object" || fields === null) return undefined;
  return new Reader(dialect).read(fields as Json);
}

/** Show a conversation in the chat, once what goes on there has ended. */
export async function openInChat(chat: LoggedChat): Promise<void> {
  await ended();
  await settled();
  change({ ...DEFAULTS, ...chat.settings });
  showNewChat(chat.turns);
  setMessage({ ...EMPTY, text: chat.text });
}

class Reader {
  private leftOut = 0;
  private readonly system: string[] = [];

  constructor(private readonly dialect: DialectName) {}

  read(fields: Json): LoggedChat | undefined {
    const listed = fields[this.dialect === "responses" ? "input" : "messages"];
    const messages = typeof listed === "string" ? [{ role: "user", content: listed }] : listed;
    if (!Array.isArray(messages)) return undefined;
    for (const name of ["system", "instructions"]) {
      if (fields[name] !== undefined) this.system.push(this.textOf(fields[name]));
    }
    const turns = messages.flatMap((message) => this.turn(message as Json));
    const last = turns.at(-1)?.role === "user" ? (turns.pop() as UserTurn) : undefined;
    return {
      settings: {
        dialect: this.dialect,
        model: String(fields["model"] ?? ""),
        system: this.system.join("\n\n"),
        temperature: text(fields["temperature"]),
        topP: text(fields["top_p"]),
        maxTokens: text(
          fields["max_completion_tokens"] ?? fields["max_output_tokens"] ?? fields["max_tokens"],
        ),
        tools: Array.isArray(fields["tools"]) ? JSON.stringify(fields["tools"], null, 2) : "",
      },
      turns,
      text: last?.text ?? "",
      leftOut: this.leftOut,
    };
  }

  private turn(message: Json): Turn[] {
    const { role, content } = message;
    if (role === "system" || role === "developer") {
      this.system.push(this.textOf(content));
      return [];
    }
    const words = this.textOf(content);
    if (role === "user" && words !== "") return [{ role: "user", text: words, attachments: [] }];
    if (role !== "assistant") {
      if (words === "") this.leftOut += 1;
      return [];
    }
    if (Array.isArray(message["tool_calls"])) this.leftOut += message["tool_calls"].length;
    const blocks: Block[] = words === "" ? [] : [{ type: "text", text: words }];
    const turn: AssistantTurn = { role: "assistant", blocks, facts: {}, state: "done" };
    return blocks.length > 0 ? [turn] : [];
  }

  /** Return the texts of a content, and count its other parts. */
  private textOf(content: unknown): string {
    if (typeof content === "string") return content;
    if (!Array.isArray(content)) return "";
    const texts: string[] = [];
    for (const part of content as Json[]) {
      if (typeof part["text"] === "string") texts.push(part["text"]);
      else this.leftOut += 1;
    }
    return texts.join("\n");
  }
}

const text = (value: unknown): string =>
  typeof value === "number" || typeof value === "string" ? String(value) : "";
