// The user's chats: what the sidebar, the list and the playground share.
import { signal } from "@preact/signals";

import { onForget } from "../shell/session";
import {
  type Conversation,
  deleteConversation,
  listConversations,
  updateConversation,
} from "./conversations";

const CURRENT = "gateway.playground.chat";
// Characters of a title: metadata takes 512.
const MAX_TITLE = 80;

/** The latest chats; undefined until they have been loaded. */
export const chats = signal<readonly Conversation[] | undefined>(undefined);
/** The id after which further chats come; "" where there are none. */
export const furtherChats = signal("");
export const chatsProblem = signal<unknown>(undefined);
/** Id of the chat that the playground of this tab shows; "" before it is stored. */
export const currentChat = signal(sessionStorage.getItem(CURRENT) ?? "");

export function setCurrentChat(id: string): void {
  currentChat.value = id;
  sessionStorage.setItem(CURRENT, id);
}

/** Load the latest chats, or those after the ones that are loaded. */
export async function loadChats(more = false): Promise<void> {
  try {
    const page = await listConversations(more ? furtherChats.value : "");
    const earlier = more ? (chats.value ?? []) : [];
    const seen = new Set(earlier.map(({ id }) => id));
    chats.value = [...earlier, ...page.data.filter(({ id }) => !seen.has(id))];
    furtherChats.value = page.has_more ? page.last_id : "";
    chatsProblem.value = undefined;
  } catch (error) {
    chatsProblem.value = error;
  }
}

/** Put a chat that has changed at the top of the list. */
export function showFirst(chat: Conversation): void {
  if (chats.value === undefined) return;
  chats.value = [chat, ...chats.value.filter(({ id }) => id !== chat.id)];
}

export async function renameChat(chat: Conversation, title: string): Promise<void> {
  showFirst(await updateConversation(chat.id, { ...chat.metadata, title: shortened(title) }));
}

export async function deleteChat(id: string): Promise<void> {
  await deleteConversation(id);
  chats.value = chats.value?.filter((chat) => chat.id !== id);
  // The playground keeps showing its turns; a further message stores them again.
  if (currentChat.value === id) setCurrentChat("");
}

export function titleOf({ metadata }: Conversation): string {
  return metadata["title"] || "Untitled";
}

/** Return the address at which the playground shows a chat. */
export function addressOf(id: string): string {
  return `/console?${new URLSearchParams({ chat: id })}`;
}

/** Return a title of a message: the beginning of its first line. */
export function shortened(text: string): string {
  const line = text.trim().split("\n", 1)[0]!.replaceAll(/^#+ |\*\*|`/g, "").trim();
  return line.length <= MAX_TITLE ? line : `${line.slice(0, MAX_TITLE - 1).trimEnd()}…`;
}

onForget(() => {
  chats.value = undefined;
  furtherChats.value = "";
  currentChat.value = "";
});
