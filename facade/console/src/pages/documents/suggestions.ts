// Suggested edits of a document: pending ones, and the decisions about them.
import { signal } from "@preact/signals";

import { SUGGESTION_UNKNOWN, hasCode, isFinal } from "./articles";
import type { Edits } from "./edits";
import type { Author } from "./reviews";

const EVERY_MS = 5000;

export interface SuggestedBlock {
  readonly blockId: string;
  /** Markdown; undefined for a new block. */
  readonly before?: string;
  /** Markdown; undefined for a block that would be deleted. */
  readonly after?: string;
  /** Of new and moved blocks: the id of the block before, "" at the beginning. */
  readonly afterId?: string;
}

export interface Suggestion {
  readonly id: string;
  readonly author: Author;
  readonly own: boolean;
  /** Unix milliseconds. */
  readonly time: number;
  readonly endpoint: string;
  /** Whether what it changes has been edited since: it cannot be accepted. */
  readonly stale: boolean;
  readonly blocks: readonly SuggestedBlock[];
  readonly references: readonly string[];
  readonly style: boolean;
  readonly properties: boolean;
}

interface Listed {
  readonly suggestions: readonly Suggestion[];
  readonly hasMore: boolean;
}

export class Suggestions {
  /** The pending suggestions, the oldest first. */
  readonly pending = signal<readonly Suggestion[]>([]);
  /** Whether there are more than those. */
  readonly hasMore = signal(false);
  /** Why the suggestions could not be read the last time. */
  readonly problem = signal<unknown>(undefined);
  #reading = 0;

  constructor(readonly edits: Edits) {}

  /** Read the suggestions now and from time to time; return what ends that. */
  follow(): () => void {
    void this.read();
    const timer = setInterval(() => {
      if (!document.hidden && !isFinal(this.problem.peek())) void this.read();
    }, EVERY_MS);
    return () => clearInterval(timer);
  }

  /** Read the suggestions; of several readings the last one that began counts. */
  async read(): Promise<void> {
    const reading = ++this.#reading;
    try {
      const { session } = this.edits.document;
      const listed = await session.call<Listed>("suggestion/list", () => ({}));
      if (reading !== this.#reading) return;
      this.problem.value = undefined;
      this.hasMore.value = listed.hasMore;
      if (JSON.stringify(listed.suggestions) !== JSON.stringify(this.pending.value)) {
        this.pending.value = listed.suggestions;
      }
    } catch (error) {
      if (reading === this.#reading) this.problem.value = error;
    }
  }

  /** Make a suggestion part of the document; one that somebody else decided on is done with. */
  accept(id: string): Promise<void> {
    return this.#decide(() => this.edits.acceptSuggestion(id));
  }

  /** Delete a suggestion; one that somebody else decided on is done with. */
  reject(id: string): Promise<void> {
    this.#reading += 1;
    this.pending.value = this.pending.value.filter((one) => one.id !== id);
    return this.#decide(() => this.edits.rejectSuggestion(id));
  }

  async #decide(act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (!hasCode(error, SUGGESTION_UNKNOWN)) throw error;
    } finally {
      await this.read();
    }
  }
}
