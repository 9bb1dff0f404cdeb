// Requests to the gateway's public API, with the session of this browser.
import { words } from "../words/common";
import { sessionHeaders, signedInAgain } from "../shell/session";

/** An error response of the gateway, or no response at all (status 0). */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code = "",
    readonly param = "",
    readonly requestId = "",
    /** What each attempt at a provider came to, of chats that failed; as the gateway sent it. */
    readonly attempts: readonly unknown[] = [],
  ) {
    super(message);
  }
}

export interface Options {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Sent as JSON. */
  json?: unknown;
  body?: FormData | Blob;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Whether the request goes on when the page is left; its body is at most 64 KB then. */
  keepalive?: boolean;
  /** For endpoints that answer in Format B. */
  formatB?: boolean;
}

/**
 * Send a request; throws ApiError for every answer that is not a success.
 *
 * When the session has ended, the page asks for another sign-in, and the request is sent again.
 */
export async function send(path: string, options: Options = {}): Promise<Response> {
  try {
    return await sendOnce(path, options);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
    if (!(await signedInAgain(options.signal))) throw error;
    return sendOnce(path, options);
  }
}

async function sendOnce(path: string, options: Options): Promise<Response> {
  const headers = credentials(options.formatB ?? false);
  Object.assign(headers, options.headers);
  let body: BodyInit | undefined = options.body;
  if (options.json !== undefined) {
    headers["content-type"] = "application/json";
    body = JSON.stringify(options.json);
  }
  const init: RequestInit = { method: options.method ?? "GET", headers, cache: "no-store" };
  if (body !== undefined) init.body = body;
  if (options.signal) init.signal = options.signal;
  if (options.keepalive) init.keepalive = true;
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(words.noAnswer, 0);
  }
  if (response.ok) return response;
  throw toError(response.status, response.headers, await response.text());
}

/** Send a request and return the JSON of its answer. */
export async function json<T>(path: string, options: Options = {}): Promise<T> {
  return (await (await send(path, options)).json()) as T;
}

/** Return the headers of every request of the session. */
export function credentials(formatB: boolean): Record<string, string> {
  return formatB ? { ...sessionHeaders(), "compat-version": "2023-06-01" } : sessionHeaders();
}

/** Return the error that an error body describes: of either format, or of document editing. */
export function toError(status: number, headers: Headers, text: string): ApiError {
  let error: Record<string, unknown> = {};
  try {
    const body = JSON.parse(text) as Record<string, unknown>;
    // Document editing has the fields of an error at the top.
    error = (body["error"] ?? body) as Record<string, unknown>;
  } catch {
    // Not the gateway's: a proxy in front of it, say.
  }
  const message = error["message"];
  return new ApiError(
    typeof message === "string" ? message : words.failedWith(status),
    status,
    String(error["code"] ?? error["type"] ?? ""),
    String(error["param"] ?? ""),
    headers.get("x-request-id") ?? "",
    Array.isArray(error["attempts"]) ? error["attempts"] : [],
  );
}
