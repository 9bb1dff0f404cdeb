// The chat as a stored conversation of the public API.
//
// A turn is appended when it is complete. A branch is a conversation of its own, which begins with
// copies of the items that it shares. A chat that another tab or program has gone on with is left as
// it is: this tab's turns become a chat of their own.
import { signal } from "@preact/signals";

import { ApiError, json } from "../../api/client";
import { branchesOf, chats, currentChat, rootOf, shortened, showFirst } from "../../chats/chats";
import {
  type Conversation,
  type Item,
  appendItems,
  createConversation,
  deleteConversation,
  deleteItem,
  getConversation,
  listItems,
  newestItemId,
  updateConversation,
} from "../../chats/conversations";
import type { StoredFile } from "../../parts/upload";
import { type Branch, branchOf } from "./branches";
import type { Turn } from "./conversation";
import { toItems, toTurns } from "./items";
import { ended, isRunning } from "./run";
import {
  branches,
  change,
  changeBranch,
  loadedBranches,
  markStored,
  message,
  setTurns,
  settings,
  showBranches,
  shownBranch,
  turns,
  turnsOf,
  withoutItems,
} from "./store";

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
    const opened = await load(id, new AbortController().signal);
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

/** Return whether the newest item of a branch is of another tab or program. */
async function isChangedElsewhere({ key, conversation }: Branch): Promise<boolean> {
  for (const { itemIds } of turnsOf(key) ?? []) itemIds?.forEach((id) => seenIds.add(id));
  const newest = await newestItemId(conversation);
  return newest !== "" && !seenIds.has(newest);
}

/** Store what a branch has beyond its stored items, after earlier calls of this function. */
export function store(key = shownBranch.value): void {
  if (!settings.value.isStored) return;
  last = last.then(async () => {
    try {
      // One tab at a time, where the page is secure.
      const storeNow = (): Promise<void> => storeBranch(key);
      await (navigator.locks?.request("gateway.chats", storeNow) ?? storeNow());
      saveProblem.value = undefined;
    } catch (error) {
      saveProblem.value = error;
    }
  });
}

async function storeBranch(key: string): Promise<void> {
  const branch = branchOf(branches.value, key);
  // Signed out meanwhile.
  if (branch === undefined || turnsOf(key)?.[0]?.role !== "user") return;
  if (branch.conversation === "") return storeAnew(branch);
  try {
    if (!(await isChangedElsewhere(branch))) return await storeTurns(key, branch.conversation);
    isApart.value = true;
  } catch (error) {
    // Deleted, or expired, meanwhile.
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
  }
  const unstored = withoutItems(turnsOf(key) ?? []);
  changeBranch(key, { conversation: "", root: "", parent: "", at: 0, turns: unstored });
  await storeBranch(key);
}

/** Store a branch as a new conversation. */
async function storeAnew(branch: Branch): Promise<void> {
  const { key, at } = branch;
  const parent = branchOf(branches.value, branch.parent);
  const left = parent?.conversation ? await found(parent.conversation) : undefined;
  const first = turnsOf(key)?.[0];
  if (first?.role !== "user") return;
  const named = shortened(first.text) || first.attachments[0]?.name || "Untitled";
  const title = isApart.value ? `${named} (apart)` : named;
  const metadata: Record<string, string> = { title, model: branch.model || settings.value.model };
  let shared: Item[] = [];
  if (left !== undefined) {
    shared = await firstItems(left.id, at);
    await markRoot(rootOf(left));
    metadata["title"] = left.metadata["title"] ?? title;
    metadata["branch_of"] = rootOf(left);
    metadata["branch_from"] = left.id;
    metadata["branch_at"] = String(at);
  }
  const chat = await createConversation(metadata);
  if (branchOf(branches.value, key) === undefined) return deleteConversation(chat.id);
  changeBranch(key, { conversation: chat.id, root: rootOf(chat) });
  showFirst(chat);
  if (shared.length > 0) await copyItems(key, chat.id, shared);
  await storeTurns(key, chat.id);
}

/** Return a conversation; undefined where it was deleted or has expired. */
async function found(id: string): Promise<Conversation | undefined> {
  try {
    return await getConversation(id);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

/** Return the items of the first turns of a conversation. */
async function firstItems(id: string, turnCount: number): Promise<Item[]> {
  const items = await listItems(id);
  const ids = toTurns(items.slice())
    .slice(0, turnCount)
    .flatMap(({ itemIds }) => itemIds ?? []);
  return items.slice(0, ids.length);
}

/** Copy items into the conversation of a branch, as they are; they have ids of their own there. */
async function copyItems(key: string, id: string, items: readonly Item[]): Promise<void> {
  const ids = await appendItems(
    id,
    items.map(({ id: _, status, ...item }) => item),
  );
  let place = 0;
  const sizes = toTurns(items).map(({ itemIds }) => itemIds?.length ?? 0);
  const marked = turnsOf(key)?.map((turn, index) => {
    const size = sizes[index] ?? 0;
    place += size;
    return size === 0 ? turn : { ...turn, itemIds: ids.slice(place - size, place) };
  });
  if (marked !== undefined) changeBranch(key, { turns: marked });
}

/** Note at the conversation with which a chat began that others belong to it. */
async function markRoot(id: string): Promise<void> {
  const root = await found(id);
  if (root === undefined || root.metadata["has_branches"]) return;
  showFirst(await updateConversation(id, { ...root.metadata, has_branches: "yes" }));
}

async function storeTurns(key: string, id: string): Promise<void> {
  for (const [index, turn] of (turnsOf(key) ?? []).entries()) {
    if (turn.role === "assistant" && turn.state === "streaming") break;
    const items = toItems(turn).slice(turn.itemIds?.length ?? 0);
    if (items.length === 0) continue;
    const ids = await appendItems(id, items);
    if (!markStored(key, index, turn, ids)) {
      // It has changed meanwhile, and is stored as it is now after this.
      for (const itemId of ids) await deleteItem(id, itemId);
      store(key);
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

/** Show a stored chat, by the conversation of one of its branches. */
export async function openChat(id: string, signal: AbortSignal): Promise<void> {
  await ended();
  await settled();
  const [chat, opened] = await Promise.all([getConversation(id, signal), load(id, signal)]);
  const all = await branchesOf(chat);
  if (signal.aborted) return;
  showBranches(all.map((one) => toBranch(one, all)), id, opened);
  saveProblem.value = undefined;
  isApart.value = false;
  const model = chat.metadata["model"];
  if (model) change({ model });
}

/** Return a branch, whose key is the id of its conversation. */
function toBranch(chat: Conversation, all: readonly Conversation[]): Branch {
  const { id, metadata } = chat;
  const from = metadata["branch_from"] ?? "";
  const at = Number(metadata["branch_at"]);
  const hasParent = Number.isSafeInteger(at) && at >= 0 && all.some((one) => one.id === from);
  return {
    key: id,
    conversation: id,
    root: rootOf(chat),
    parent: hasParent ? from : "",
    at: hasParent ? at : 0,
    model: metadata["model"] ?? "",
  };
}

/** Show another branch of the chat. */
export async function switchTo(key: string): Promise<void> {
  await ended();
  const branch = branchOf(branches.value, key);
  if (branch === undefined || key === shownBranch.value) return;
  const { conversation, model } = branch;
  const shown = branch.turns ?? (await load(conversation, new AbortController().signal));
  showBranches(loadedBranches(), key, shown);
  if (model) change({ model });
}

async function load(id: string, signal: AbortSignal): Promise<Turn[]> {
  const opened = toTurns(await listItems(id, signal));
  await nameAttachments(opened, signal);
  return opened;
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
