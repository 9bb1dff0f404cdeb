// A remembered conversation that goes on as a chat.
import type { AssistantTurn, Turn as ChatTurn } from "../chat/conversation";
import { settings } from "../chat/store";
import { openInChat } from "../requests/open_in_chat";
import { type Turn, type TurnMessage, listTurns } from "./memories";

/**
 * Continue a conversation in the chat, under its name; its turns are shown if they are all texts and
 * come in one page. The gateway has the whole of it in any case.
 */
export async function continueInChat(id: string): Promise<void> {
  const { data, next_page } = await listTurns(id, "");
  const turns = next_page === null ? chatTurns(data) : undefined;
  const { dialect, model } = settings.value;
  await openInChat({ settings: { dialect, model, memoryId: id }, turns: turns ?? [], text: "", leftOut: 0 });
}

/** Return turns, which come newest first, as those of a chat; undefined where they hold more than text. */
function chatTurns(newestFirst: readonly Turn[]): ChatTurn[] | undefined {
  const shown: ChatTurn[] = [];
  for (const { open, messages } of newestFirst.toReversed()) {
    if (open) return undefined;
    for (const message of messages) {
      const text = textOf(message);
      if (text === undefined) return undefined;
      if (message.role === "user") {
        shown.push({ role: "user", text, attachments: [] });
      } else {
        const turn: AssistantTurn = { role: "assistant", blocks: [{ type: "text", text }], facts: {}, state: "done" };
        shown.push(turn);
      }
    }
  }
  return shown;
}

function textOf({ content }: TurnMessage): string | undefined {
  if (content.some(({ type }) => type !== "text")) return undefined;
  return content.map(({ text }) => text ?? "").join("\n");
}
