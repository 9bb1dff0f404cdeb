// The user's chats: what the sidebar, the list and the chat share.
//
// A chat is one conversation of the API, or several: each branch is a conversation of its own, which
// any client can read and continue, and names in its metadata what it belongs to.
import { computed, signal } from "@preact/signals";

import { onForget } from "../shell/session";
import {
  type Conversation,
  deleteConversation,
  listConversations,
  updateConversation,
} from "./conversations";

const CURRENT = "gateway.playground.chat";
// Pages of conversations in which branches are looked for.
const MAX_PAGES = 20;
// Characters of a title: metadata takes 512.
const MAX_TITLE = 80;

/** The latest chats; undefined until they have been loaded. */
export const chats = signal<readonly Conversation[] | undefined>(undefined);
/** The id after which further chats come; "" where there are none. */
export const furtherChats = signal("");
export const chatsProblem = signal<unknown>(undefined);
/** The latest chats, each by the branch that changed last. */
export const latestChats = computed(() => {
  const roots = new Set<string>();
  return chats.value?.filter((chat) => {
    const isFirst = !roots.has(rootOf(chat));
    roots.add(rootOf(chat));
    return isFirst;
  });
});
/** Id of the conversation that the chat of this tab shows; "" before it is stored. */
export const currentChat = signal(sessionStorage.getItem(CURRENT) ?? "");
/** Id of the conversation with which that chat began. */
export const currentRoot = signal("");

export function setCurrentChat(id: string, root: string): void {
  currentChat.value = id;
  currentRoot.value = root;
  sessionStorage.setItem(CURRENT, id);
}

/** Return the id of the conversation with which a chat began. */
export function rootOf({ id, metadata }: Conversation): string {
  return metadata["branch_of"] || id;
}

/** Return the conversations of a chat, the oldest first. */
export async function branchesOf(chat: Conversation): Promise<Conversation[]> {
  if (!chat.metadata["branch_of"] && !chat.metadata["has_branches"]) return [chat];
  const root = rootOf(chat);
  const branches: Conversation[] = [];
  for (let after = "", hasMore = true, page = 0; hasMore && page < MAX_PAGES; page += 1) {
    const listed = await listConversations(after);
    branches.unshift(...listed.data.filter((one) => rootOf(one) === root).reverse());
    after = listed.last_id;
    hasMore = listed.has_more;
  }
  return branches.sort((one, other) => one.created_at - other.created_at);
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
  const branches = await branchesOf(chat);
  const renamed: Conversation[] = [];
  // The one that is shown in the list last, so that it stays the latest.
  for (const branch of [...branches.filter(({ id }) => id !== chat.id), chat]) {
    const metadata = { ...branch.metadata, title: shortened(title) };
    renamed.push(await updateConversation(branch.id, metadata));
  }
  // The new name is shown when all branches have it.
  renamed.forEach(showFirst);
}

/** Delete a chat with all of its branches. */
export async function deleteChat(chat: Conversation): Promise<void> {
  const root = rootOf(chat);
  for (const { id } of await branchesOf(chat)) await deleteConversation(id);
  chats.value = chats.value?.filter((one) => rootOf(one) !== root);
  // The playground keeps showing its turns; a further message stores them again.
  if (currentRoot.value === root) setCurrentChat("", "");
}

export function titleOf({ metadata }: Conversation): string {
  return metadata["title"] || "Untitled";
}

/** Return the address at which the chat shows a chat. */
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
  currentRoot.value = "";
});
