// The request log: that of the caller by the public API, and everyone's for administrators.
import { json } from "../../api/client";
import { type List, call } from "../../admin/calls";
import type { Scope } from "../../admin/scope";

export interface LoggedRequest {
  id: string;
  request_id: string;
  /** Unix seconds. */
  ended_at: number;
  user_id: string;
  key_id: string;
  tags: Readonly<Record<string, string>>;
  end_user: string | null;
  endpoint: string;
  status: number;
  error_code: string | null;
  requested_model: string | null;
  model: string | null;
  provider: string | null;
  attempts: number;
  duration_ms: number;
  first_content_ms: number | null;
  input_tokens: number;
  output_tokens: number;
  /** Decimal dollars; null if it is not known. */
  cost: string | null;
  has_bodies: boolean;
}

export interface LoggedBody {
  content: string;
  truncated: boolean;
}

/** An attempt at a provider that failed. */
export interface FailedAttempt {
  step: string;
  model: string;
  status: number | null;
  reason: string;
  ms: number;
}

export interface RequestDetails extends LoggedRequest {
  failed_attempts: readonly FailedAttempt[];
  /** Headers that the gateway added to the response. */
  headers: Readonly<Record<string, string>>;
  request_body: LoggedBody | null;
  response_body: LoggedBody | null;
}

/** Values of the query of the list, by their names. */
export type RequestFilter = Readonly<Record<string, string>>;

const PAGE_SIZE = 50;
// Pages of the API that are read for a page of the list: with a filter, many may have no entry.
const MAX_READ = 10;

const pathOf = (scope: Scope): string =>
  scope === "mine" ? "/v1/usage/requests" : "/admin/v1/requests";

function read<T>(scope: Scope, path: string, signal?: AbortSignal): Promise<T> {
  const options = signal === undefined ? {} : { signal };
  return scope === "mine" ? json<T>(path, options) : call<T>(path, options);
}

/** Return a page of the log, the newest first; fewer than a page where there are few far and wide. */
export async function listRequests(
  scope: Scope,
  filter: RequestFilter,
  cursor: string,
  signal?: AbortSignal,
): Promise<{ items: LoggedRequest[]; next: string }> {
  const items: LoggedRequest[] = [];
  let next = cursor;
  for (let count = 0; count < MAX_READ; count += 1) {
    const query = new URLSearchParams({ ...filter, limit: String(PAGE_SIZE) });
    if (next !== "") query.set("page", next);
    const list = await read<List<LoggedRequest>>(scope, `${pathOf(scope)}?${query}`, signal);
    items.push(...list.data);
    next = list.next_page ?? "";
    if (next === "" || items.length > 0) break;
  }
  return { items, next };
}

export function getRequest(
  scope: Scope,
  id: string,
  signal?: AbortSignal,
): Promise<RequestDetails> {
  return read(scope, `${pathOf(scope)}/${encodeURIComponent(id)}`, signal);
}
