// The chat of the playground as a stored conversation of the public API.
//
// A turn is appended when it is complete, and the items of a turn that was edited or answered anew
// are deleted. A chat that another tab or program has gone on with is left as it is: this tab's turns
// become a chat of their own.
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
  newestItemId,
} from "../../chats/conversations";
import type { StoredFile } from "../../parts/upload";
import type { Turn } from "./conversation";
import { toItems, toTurns } from "./items";
import { ended, isRunning } from "./run";
import { change, markStored, message, setTurns, settings, turns } from "./store";

/** Why the chat is not stored; undefined while it is. */
export const saveProblem = signal<unknown>(undefined);

/** Whether this chat was stored apart, as another tab had gone on with it. */
export const isApart = signal(false);

let last: Promise<void> = Promise.resolve();
// Ids of items that this tab has stored or read, of turns that are no longer shown too.
const seenIds = new Set<string>();

// Tabs tell one another which chat they have changed.
const tabs = new BroadcastChannel("gateway.chats");
tabs.addEventListener("message", ({ data }) => void showChanges(String(data)));

/** Show what another tab has stored in the chat that this one shows too. */
async function showChanges(id: string): Promise<void> {
  const shown = turns.value;
  if (id !== currentChat.value || isRunning.value || message.value.edited !== undefined) return;
  try {
    const opened = toTurns(await listItems(id));
    await nameAttachments(opened, new AbortController().signal);
    // What was sent meanwhile is stored apart.
    if (turns.value !== shown || id !== currentChat.value) return;
    // Only this tab knows the costs and times of its own answers.
    setTurns(
      opened.map((turn, index) =>
        String(turn.itemIds) === String(shown[index]?.itemIds) ? shown[index]! : turn,
      ),
    );
  } catch {
    // Deleted meanwhile: the next message stores it anew.
  }
}

/** Return whether the newest item of a chat is of another tab or program. */
async function isChangedElsewhere(id: string): Promise<boolean> {
  for (const { itemIds } of turns.value) itemIds?.forEach((itemId) => seenIds.add(itemId));
  const newest = await newestItemId(id);
  return newest !== "" && !seenIds.has(newest);
}

/** Store what the conversation has beyond its stored items, after earlier calls of this function. */
export function store(): void {
  if (!settings.value.isStored) return;
  last = last.then(async () => {
    try {
      // One tab at a time, where the page is secure.
      await (navigator.locks?.request("gateway.chats", storeNow) ?? storeNow());
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
  if (currentChat.value !== "" && (await isChangedElsewhere(currentChat.value))) {
    isApart.value = true;
    forgetItems();
    return storeNow();
  }
  if (currentChat.value === "") {
    const named = shortened(first.text) || first.attachments[0]?.name || "Untitled";
    const title = isApart.value ? `${named} (apart)` : named;
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
  tabs.postMessage(id);
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
  ids.forEach((itemId) => seenIds.add(itemId));
  last = last
    .then(async () => {
      // It has been stored apart: the items are another tab's too.
      if (currentChat.value !== id) return;
      await deleteAll(id, ids);
      tabs.postMessage(id);
    })
    .catch((error: unknown) => {
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
  isApart.value = false;
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
