// Stored conversations of the public API.
import { json, send } from "../api/client";

export interface Conversation {
  id: string;
  /** Unix seconds. */
  created_at: number;
  metadata: Record<string, string>;
}

/** An item of a conversation, as the Responses API has it. */
export type Item = Record<string, unknown>;

interface Page<T> {
  data: T[];
  last_id: string;
  has_more: boolean;
}

const PATH = "/v1/conversations";
const PAGE_SIZE = 100;
// Items that one request may append.
const MAX_APPENDED = 20;

const at = (id: string): string => `${PATH}/${encodeURIComponent(id)}`;

/** Return a page of the user's conversations, the latest change first. */
export function listConversations(
  after: string,
  signal?: AbortSignal,
): Promise<Page<Conversation>> {
  const query = new URLSearchParams({ limit: String(PAGE_SIZE) });
  if (after !== "") query.set("after", after);
  return json(`${PATH}?${query}`, signal ? { signal } : {});
}

export function createConversation(metadata: Record<string, string>): Promise<Conversation> {
  return json(PATH, { method: "POST", json: { metadata } });
}

export function getConversation(id: string, signal?: AbortSignal): Promise<Conversation> {
  return json(at(id), signal ? { signal } : {});
}

/** Replace the metadata of a conversation. */
export function updateConversation(
  id: string,
  metadata: Record<string, string>,
): Promise<Conversation> {
  return json(at(id), { method: "POST", json: { metadata } });
}

export async function deleteConversation(id: string): Promise<void> {
  await send(at(id), { method: "DELETE" });
}

/** Return all items of a conversation, the oldest first. */
export async function listItems(id: string, signal?: AbortSignal): Promise<Item[]> {
  const items: Item[] = [];
  for (let after = "", hasMore = true; hasMore; ) {
    const query = new URLSearchParams({ limit: String(PAGE_SIZE), order: "asc" });
    if (after !== "") query.set("after", after);
    const page = await json<Page<Item>>(`${at(id)}/items?${query}`, signal ? { signal } : {});
    items.push(...page.data);
    after = page.last_id;
    hasMore = page.has_more;
  }
  return items;
}

/** Return the id of the newest item; "" without items. */
export async function newestItemId(id: string): Promise<string> {
  const page = await json<Page<Item>>(`${at(id)}/items?limit=1&order=desc`);
  return String(page.data[0]?.["id"] ?? "");
}

/** Append items; return their ids. */
export async function appendItems(id: string, items: readonly Item[]): Promise<string[]> {
  const ids: string[] = [];
  for (let start = 0; start < items.length; start += MAX_APPENDED) {
    const body = { items: items.slice(start, start + MAX_APPENDED) };
    const page = await json<Page<Item>>(`${at(id)}/items`, { method: "POST", json: body });
    ids.push(...page.data.map((item) => String(item["id"])));
  }
  return ids;
}

export async function deleteItem(id: string, itemId: string): Promise<void> {
  await send(`${at(id)}/items/${encodeURIComponent(itemId)}`, { method: "DELETE" });
}
