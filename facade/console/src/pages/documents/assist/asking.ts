// A model asked by the public API, in the session of whoever reads the document.
import { answerEvents } from "../../../api/answer_events";
import { send } from "../../../api/client";
import { safeAddress } from "../../../parts/links";
import { assistWords } from "../../../words/documents/assist";
import type { Prompt } from "./tasks";

/** A page that a model cites, or has found. */
export interface Source {
  readonly url: string;
  readonly title: string;
  /** Whether the answer cites it. */
  readonly isCited: boolean;
}

export interface Answer {
  readonly text: string;
  readonly sources: readonly Source[];
}

/** Milliseconds between two looks of an answer that grows. */
const SHOWN_EVERY_MS = 50;
const MOST_SOURCES = 30;

/** Ask a model; `show` is called with the answer as it grows. */
export async function ask(
  model: string,
  prompt: Prompt,
  hasSearch: boolean,
  show: (answer: Answer) => void,
  signal: AbortSignal,
): Promise<void> {
  const search = {
    tools: [{ type: "web_search" }],
    include: ["web_search_call.action.sources"],
  };
  const json = { model, ...prompt, ...(hasSearch ? search : {}), stream: true, store: false };
  const response = await send("/v1/responses", { method: "POST", json, signal });
  const reader = new Reader();
  let later: number | undefined;
  const showNow = (): void => {
    later = undefined;
    show(reader.answer);
  };
  try {
    for await (const event of answerEvents(response)) {
      reader.read(event);
      later ??= window.setTimeout(showNow, SHOWN_EVERY_MS);
    }
  } finally {
    window.clearTimeout(later);
    showNow();
  }
  if (!reader.isComplete) throw new Error(assistWords.brokeOff);
}

type Json = Record<string, unknown>;

class Reader {
  isComplete = false;
  #text = "";
  readonly #sources = new Map<string, Source>();

  get answer(): Answer {
    return { text: this.#text, sources: [...this.#sources.values()] };
  }

  read(event: Json): void {
    switch (event["type"]) {
      case "response.output_text.delta":
      case "response.refusal.delta":
        this.#text += String(event["delta"]);
        break;
      case "response.output_text.annotation.added":
        this.#source(event["annotation"], true);
        break;
      case "response.output_item.done": {
        const { action } = (event["item"] ?? {}) as { action?: { sources?: unknown } };
        if (Array.isArray(action?.sources)) for (const one of action.sources) this.#source(one, false);
        break;
      }
      case "response.completed":
      case "response.incomplete":
        this.isComplete = true;
        break;
    }
  }

  #source(given: unknown, isCited: boolean): void {
    const { url, title } = (given ?? {}) as Json;
    const address = typeof url === "string" ? safeAddress(url) : undefined;
    if (address === undefined || !/^https?:/.test(address)) return;
    const key = address.replace(/\/$/, "");
    const before = this.#sources.get(key);
    if (before === undefined && this.#sources.size >= MOST_SOURCES) return;
    this.#sources.set(key, {
      url: address,
      title: typeof title === "string" && title.trim() !== "" ? title : (before?.title ?? address),
      isCited: isCited || (before?.isCited ?? false),
    });
  }
}
