// Requests to the gateway's public API, with the key of this tab.
import { adminKey, apiKey, signOut } from "../shell/session";

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
  /** Sends the admin key. */
  admin?: boolean;
  /** Sends the key as `x-api-key`, for endpoints that answer in Format B. */
  formatB?: boolean;
}

/** Send a request; throws ApiError for every answer that is not a success. */
export async function send(path: string, options: Options = {}): Promise<Response> {
  const headers = credentials(options.admin ?? false, options.formatB ?? false);
  Object.assign(headers, options.headers);
  let body: BodyInit | undefined = options.body;
  if (options.json !== undefined) {
    headers["content-type"] = "application/json";
    body = JSON.stringify(options.json);
  }
  const init: RequestInit = { method: options.method ?? "GET", headers, cache: "no-store" };
  if (body !== undefined) init.body = body;
  if (options.signal) init.signal = options.signal;
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError("The gateway does not answer. Is it running?", 0);
  }
  if (response.ok) return response;
  const failure = toError(response.status, response.headers, await response.text());
  if (response.status === 401 && !options.admin) signOut(`Signed out: ${failure.message}`);
  throw failure;
}

/** Send a request and return the JSON of its answer. */
export async function json<T>(path: string, options: Options = {}): Promise<T> {
  return (await (await send(path, options)).json()) as T;
}

/** Return the headers that authenticate this tab. */
export function credentials(admin: boolean, formatB: boolean): Record<string, string> {
  if (admin) return { authorization: `Bearer ${adminKey.value}` };
  if (formatB) return { "x-api-key": apiKey.value, "compat-version": "2023-06-01" };
  return { authorization: `Bearer ${apiKey.value}` };
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
    typeof message === "string" ? message : `The gateway answered with status ${status}.`,
    status,
    String(error["code"] ?? error["type"] ?? ""),
    String(error["param"] ?? ""),
    headers.get("x-request-id") ?? "",
    Array.isArray(error["attempts"]) ? error["attempts"] : [],
  );
}
