// The file store, in Format B, which has MIME types.
import { json, send } from "../../api/client";

export interface StoreFile {
  id: string;
  filename: string;
  mime_type: string;
  size_bytes: number;
  /** RFC 3339. */
  created_at: string;
  /** RFC 3339. */
  expires_at: string;
}

interface FilePage {
  data: StoreFile[];
  has_more: boolean;
  last_id: string | null;
}

export interface Storage {
  files: number;
  used_bytes: number;
  quota_bytes: number;
}

const PAGE = 50;
export const path = (id: string): string => `/v1/files/${encodeURIComponent(id)}`;

/** Return a page of files, and what the next page is asked for with. */
export async function listFiles(
  afterId: string,
  signal?: AbortSignal,
): Promise<{ items: StoreFile[]; next: string }> {
  const query = new URLSearchParams({ limit: String(PAGE) });
  if (afterId) query.set("after_id", afterId);
  const page = await json<FilePage>(`/v1/files?${query}`, { formatB: true, signal });
  return { items: page.data, next: page.has_more ? (page.last_id ?? "") : "" };
}

export function getStorage(signal?: AbortSignal): Promise<Storage> {
  return json<Storage>("/v1/storage", { signal });
}

export async function deleteFile(id: string): Promise<void> {
  await send(path(id), { method: "DELETE" });
}

/** Return the content of a file, or its first `length` bytes. */
export async function contentOf(
  file: StoreFile,
  { length, signal }: { length?: number; signal?: AbortSignal } = {},
): Promise<Blob> {
  const isPart = length !== undefined && length < file.size_bytes;
  const headers: Record<string, string> = isPart ? { range: `bytes=0-${length - 1}` } : {};
  return (await send(`${path(file.id)}/content`, { headers, signal })).blob();
}
