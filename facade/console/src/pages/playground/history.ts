// The chat of the playground as a stored conversation of the public API.
//
// A turn is appended when it is complete, and the items of a turn that was edited or answered anew
// are deleted.
import { signal } from "@preact/signals";

import { ApiError, json } from "../../api/client";
import { chats, currentChat, setCurrentChat, shortened, showFirst } from "../../chats/chats";
import {
  appendItems,
  createConversation,
  deleteConversation,
  deleteItem,
  getConversation,
  listItems,
} from "../../chats/conversations";
import type { StoredFile } from "../../parts/upload";
import type { Turn } from "./conversation";
import { toItems, toTurns } from "./items";
import { ended } from "./run";
import { change, markStored, setTurns, settings, turns } from "./store";

/** Why the chat is not stored; undefined while it is. */
export const saveProblem = signal<unknown>(undefined);

let last: Promise<void> = Promise.resolve();

/** Store what the conversation has beyond its stored items, after earlier calls of this function. */
export function store(): void {
  if (!settings.value.isStored) return;
  last = last.then(async () => {
    try {
      await storeNow();
      saveProblem.value = undefined;
    } catch (error) {
      saveProblem.value = error;
      // Deleted elsewhere: it is stored anew with the next message.
      if (error instanceof ApiError && error.status === 404) forgetItems();
    }
  });
}

function forgetItems(): void {
  setCurrentChat("");
  setTurns(turns.value.map((turn) => ({ ...turn, itemIds: [] })));
}

async function storeNow(): Promise<void> {
  const shown = turns.value;
  const first = shown[0];
  if (first?.role !== "user") return;
  if (currentChat.value === "") {
    const title = shortened(first.text) || first.attachments[0]?.name || "Untitled";
    const chat = await createConversation({ title, model: settings.value.model });
    if (turns.value[0] !== shown[0]) {
      // Edited meanwhile: what replaces it makes a chat of its own.
      await deleteConversation(chat.id);
      return;
    }
    setCurrentChat(chat.id);
    showFirst(chat);
  }
  const id = currentChat.value;
  for (const [index, turn] of shown.entries()) {
    if (turn.role === "assistant" && turn.state === "streaming") break;
    const items = toItems(turn).slice(turn.itemIds?.length ?? 0);
    if (items.length === 0) continue;
    const ids = await appendItems(id, items);
    if (!markStored(index, turn, ids)) {
      // Edited meanwhile.
      await deleteAll(id, ids);
      return;
    }
  }
  const chat = chats.value?.find((one) => one.id === id);
  if (chat !== undefined) showFirst(chat);
}

/** Wait until what was to be stored is stored, or has failed. */
export function settled(): Promise<void> {
  return last;
}

/** Delete the stored items of turns that are left out of a conversation. */
export function forget(left: readonly Turn[]): void {
  const ids = left.flatMap(({ itemIds }) => itemIds ?? []);
  const id = currentChat.value;
  if (ids.length === 0 || id === "") return;
  last = last.then(() => deleteAll(id, ids)).catch((error: unknown) => {
    saveProblem.value = error;
  });
}

async function deleteAll(id: string, itemIds: readonly string[]): Promise<void> {
  for (const itemId of itemIds) await deleteItem(id, itemId);
}

/** Show a stored chat. */
export async function openChat(id: string, signal: AbortSignal): Promise<void> {
  await ended();
  await settled();
  const [chat, items] = await Promise.all([getConversation(id, signal), listItems(id, signal)]);
  const opened = toTurns(items);
  await nameAttachments(opened, signal);
  if (signal.aborted) return;
  setCurrentChat(id);
  setTurns(opened);
  saveProblem.value = undefined;
  const model = chat.metadata["model"];
  if (model) change({ model });
}

/** Name the attachments, of which only ids are stored, as their files are named. */
async function nameAttachments(opened: readonly Turn[], signal: AbortSignal): Promise<void> {
  const attachments = opened.flatMap((turn) => (turn.role === "user" ? turn.attachments : []));
  await Promise.all(
    attachments.map(async (attachment) => {
      try {
        const path = `/v1/files/${encodeURIComponent(attachment.fileId)}`;
        attachment.name = (await json<StoredFile>(path, { signal })).filename;
      } catch {
        // A file that has expired is shown by its id.
      }
    }),
  );
}
