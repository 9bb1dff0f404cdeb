// The request log, with the admin key of this tab.
import { type List, call } from "./admin";

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
}

export interface LoggedBody {
  content: string;
  truncated: boolean;
}

export interface RequestWithBodies extends LoggedRequest {
  request_body: LoggedBody | null;
  response_body: LoggedBody | null;
}

/** Values of the query of the list, by their names. */
export type RequestFilter = Readonly<Record<string, string>>;

export async function listLoggedRequests(
  filter: RequestFilter,
  page: string,
  signal?: AbortSignal,
): Promise<{ items: LoggedRequest[]; next: string }> {
  const query = new URLSearchParams({ ...filter, limit: "20", ...(page ? { page } : {}) });
  const list = await call<List<LoggedRequest>>(`/admin/v1/requests?${query}`, { signal });
  return { items: list.data, next: list.next_page ?? "" };
}

export function getLoggedRequest(id: string, signal?: AbortSignal): Promise<RequestWithBodies> {
  return call(`/admin/v1/requests/${encodeURIComponent(id)}`, { signal });
}
