// Memories and the profile, in Format A.
import { json, send } from "../../api/client";

export interface MemoryRecord {
  id: string;
  /** Unix seconds. */
  created_at: number;
  /** Unix seconds. */
  updated_at: number;
  /** Number of turns. */
  turns: number;
  /** Number of turns that the summary covers. */
  summarised: number;
  /** Number of turns that wait for a background job. */
  pending: number;
  state: "idle" | "writing" | "summarising";
}

export interface MemoryDetails extends MemoryRecord {
  summary: string | null;
  degraded: boolean;
}

/** A part of a message; which fields it has depends on its type. */
export interface Part {
  type: string;
  text?: string;
  refusal?: string;
  name?: string;
  description?: string;
  file_id?: string;
  url?: string;
  mime_type?: string;
  input?: unknown;
  content?: readonly Part[];
  is_error?: boolean;
}

export interface TurnMessage {
  role: string;
  name?: string;
  content: readonly Part[];
}

export interface Turn {
  id: number;
  /** Unix seconds. */
  created_at: number;
  open: boolean;
  messages: readonly TurnMessage[];
}

/** A result of a search; `id` is the turn's. */
export interface Snippet {
  id: number;
  /** Unix seconds. */
  created_at: number;
  text: string;
  score: number;
}

export interface Fact {
  id: string;
  topic: string;
  sub_topic: string;
  value: string;
  sources: readonly { memory_id: string; turn: number }[];
  /** Unix seconds. */
  updated_at: number;
}

export interface Page<T> {
  data: T[];
  next_page: string | null;
}

const path = (id: string): string => `/v1/memories/${encodeURIComponent(id)}`;
const paging = (page: string): string => `?${new URLSearchParams(page ? { page } : {})}`;

export function listMemories(page: string, signal?: AbortSignal): Promise<Page<MemoryRecord>> {
  return json(`/v1/memories${paging(page)}`, { signal });
}

export function getMemory(id: string, signal?: AbortSignal): Promise<MemoryDetails> {
  return json(path(id), { signal });
}

export async function deleteMemory(id: string): Promise<void> {
  await send(path(id), { method: "DELETE" });
}

export function listTurns(id: string, page: string, signal?: AbortSignal): Promise<Page<Turn>> {
  return json(`${path(id)}/turns${paging(page)}`, { signal });
}

export async function search(id: string, query: string, signal?: AbortSignal): Promise<Snippet[]> {
  const options = { method: "POST", json: { query }, signal } as const;
  return (await json<Page<Snippet>>(`${path(id)}/search`, options)).data;
}

export async function getProfile(signal?: AbortSignal): Promise<Fact[]> {
  return (await json<{ facts: Fact[] }>("/v1/memory/profile", { signal })).facts;
}

const factPath = (id: string): string => `/v1/memory/profile/facts/${encodeURIComponent(id)}`;

export async function correctFact(id: string, value: string): Promise<void> {
  await send(factPath(id), { method: "PATCH", json: { value } });
}

export async function deleteFact(id: string): Promise<void> {
  await send(factPath(id), { method: "DELETE" });
}

export async function deleteProfile(): Promise<void> {
  await send("/v1/memory/profile", { method: "DELETE" });
}
