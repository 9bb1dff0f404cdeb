// Uploads to the file store. XMLHttpRequest, as fetch does not say how much it has sent.
import { ApiError, credentials, toError } from "../api/client";
import { signedInAgain } from "../shell/session";
import { words } from "../words/common";

/** A file of the store in Format A. */
export interface StoredFile {
  id: string;
  filename: string;
  bytes: number;
  purpose: string;
  /** Unix seconds. */
  created_at: number;
  /** Unix seconds. */
  expires_at: number;
}

export interface UploadOptions {
  /** What the file is for; `user_data` when absent. */
  purpose?: string;
  /** Seconds until it expires; 30 days when absent. */
  expiresAfterS?: number;
  /** Called with the part that has been sent, 0 to 1. */
  onProgress?: (sent: number) => void;
  signal?: AbortSignal;
}

/**
 * Store a file; throws ApiError when it is refused, and the signal's reason when it is aborted.
 *
 * It is sent again after another sign-in if the session has ended.
 */
export async function upload(file: File, options: UploadOptions = {}): Promise<StoredFile> {
  try {
    return await uploadOnce(file, options);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
    if (!(await signedInAgain(options.signal))) throw error;
    return uploadOnce(file, options);
  }
}

function uploadOnce(file: File, options: UploadOptions): Promise<StoredFile> {
  const form = new FormData();
  form.set("purpose", options.purpose ?? "user_data");
  if (options.expiresAfterS !== undefined) {
    const expiry = { anchor: "created_at", seconds: options.expiresAfterS };
    form.set("expires_after", JSON.stringify(expiry));
  }
  form.set("file", file, file.name);
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const abort = (): void => request.abort();
    request.open("POST", "/v1/files");
    for (const [name, value] of Object.entries(credentials(false))) {
      request.setRequestHeader(name, value);
    }
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) options.onProgress?.(event.loaded / event.total);
    });
    request.addEventListener("load", () => {
      if (request.status === 200) {
        resolve(JSON.parse(request.responseText) as StoredFile);
        return;
      }
      reject(toError(request.status, headersOf(request), request.responseText));
    });
    request.addEventListener("error", () => {
      reject(new ApiError(words.uploads.brokeOff, 0));
    });
    request.addEventListener("abort", () => reject(options.signal?.reason));
    request.addEventListener("loadend", () => options.signal?.removeEventListener("abort", abort));
    if (options.signal?.aborted) {
      reject(options.signal.reason);
      return;
    }
    options.signal?.addEventListener("abort", abort);
    request.send(form);
  });
}

function headersOf(request: XMLHttpRequest): Headers {
  const id = request.getResponseHeader("x-request-id");
  return new Headers(id === null ? {} : { "x-request-id": id });
}
