// Pages of documents: pictures of PDF and DOCX, texts of PPTX and XLSX.
import { send } from "../../api/client";
import { path } from "./store";

const OFFICE = "application/vnd.openxmlformats-officedocument";
const TYPES: readonly string[] = [
  "application/pdf",
  `${OFFICE}.wordprocessingml.document`,
  `${OFFICE}.presentationml.presentation`,
  `${OFFICE}.spreadsheetml.sheet`,
];
// The gateway converts few files at a time; other requests of the page must not wait for them.
const MAX_REQUESTS = 3;

export interface FilePage {
  /** Markdown, or a picture. */
  content: string | Blob;
  /** How many pages the document has. */
  count: number;
}

export const hasPages = (mimeType: string): boolean => TYPES.includes(mimeType);

/** Return a page of a file; thumbnails are small pictures, or the beginnings of texts. */
export async function pageOf(
  fileId: string,
  number: number,
  { isThumbnail = false, signal }: { isThumbnail?: boolean; signal?: AbortSignal } = {},
): Promise<FilePage> {
  const size = isThumbnail ? "thumbnail" : "full";
  return inTurn(signal, async () => {
    const answer = await send(`${path(fileId)}/pages/${number}?size=${size}`, { signal });
    const isText = answer.headers.get("content-type")?.startsWith("text/") ?? false;
    const content = await (isText ? answer.text() : answer.blob());
    return { content, count: Number(answer.headers.get("x-gateway-page-count")) };
  });
}

let running = 0;
const waiting: (() => void)[] = [];

/** Do something once few others are being done; nothing if the signal is aborted by then. */
async function inTurn<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
  if (running >= MAX_REQUESTS) await new Promise<void>((resolve) => waiting.push(resolve));
  else running += 1;
  try {
    signal?.throwIfAborted();
    return await work();
  } finally {
    const next = waiting.shift();
    if (next) next();
    else running -= 1;
  }
}
