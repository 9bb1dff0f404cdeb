// Calls of the document editing API.
import { ApiError, json } from "../../api/client";
import type { Article, ArticleGroup } from "./types";

export const REVISION_IS_STALE = "40901";
export const SUGGESTION_UNKNOWN = "40411";
const SESSION_UNKNOWN = "40401";
const SESSION_EXPIRED = "41001";

/** Browsers allow 64 KiB; a character has up to four bytes. */
const LONGEST_KEPT_ALIVE = 16_000;

/** Send a call and return the `data` of its answer. */
export async function call<T>(path: string, body: object, signal?: AbortSignal): Promise<T> {
  // What was typed last is sent although its tab is being closed.
  const keepalive = path === "edits/apply" && JSON.stringify(body).length < LONGEST_KEPT_ALIVE;
  const options = { method: "POST", json: body, formatB: true, keepalive } as const;
  const answer = await json<{ data: T }>(`/article/v1/${path}`, { ...options, signal });
  return answer.data;
}

export function hasCode(error: unknown, code: string): boolean {
  return error instanceof ApiError && error.code === code;
}

/** Return whether an error says that a session is over, while its document may be there. */
export function isSessionOver(error: unknown): boolean {
  return hasCode(error, SESSION_EXPIRED) || hasCode(error, SESSION_UNKNOWN);
}

/** Return whether asking again would be answered the same. */
export function isFinal(error: unknown): boolean {
  return error instanceof ApiError && [401, 403, 404, 410].includes(error.status);
}

export async function listGroups(signal: AbortSignal): Promise<ArticleGroup[]> {
  return (await call<{ articles: ArticleGroup[] }>("doc/list", {}, signal)).articles;
}

export async function createArticle(name: string, group: number): Promise<Article> {
  const body = name === "" ? { group } : { group, name };
  return (await call<{ article: Article }>("doc/create", body)).article;
}

export async function deleteArticle(docId: string): Promise<void> {
  await call("doc/delete", { docId });
}
