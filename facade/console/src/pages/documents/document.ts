// An open document: its blocks as signals, kept up to date with what anyone edits.
import { type Signal, batch, signal } from "@preact/signals";

import { isFinal } from "./articles";
import { Session } from "./session";
import type { ArticleStyle, BlockState, Changes, Reference, ShownLabel } from "./types";

const FIRST_READ = 100;
const BLOCKS_A_READ = 500;
const EVERY_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;

/** A block on the page; each renders by itself. */
export interface Entry {
  readonly id: string;
  /** Undefined until it has been read. */
  readonly state: Signal<BlockState | undefined>;
  readonly isSelected: Signal<boolean>;
  readonly isEditing: Signal<boolean>;
  /** Deleted while it was being edited here: it stays until its text is saved or given up. */
  readonly isGone: Signal<boolean>;
}

export class OpenDocument {
  /** Ids of the blocks on the page. */
  readonly order = signal<readonly string[]>([]);
  /** Number of each cited reference. */
  readonly numbers = signal<ReadonlyMap<string, number>>(new Map());
  /** What references to blocks say, by the labels of the blocks. */
  readonly labels = signal<Readonly<Record<string, ShownLabel>>>({});
  readonly references = signal<readonly Reference[]>([]);
  readonly style = signal<ArticleStyle>({});
  readonly isOpen = signal(false);
  /** Id of the selected block, "" if none is. */
  readonly selected = signal("");
  /** Why the document cannot be read at present. */
  readonly problem = signal<unknown>(undefined);
  /** Id of the block that takes the focus as soon as it is there. */
  readonly wanted = signal("");
  /** The last revision that was read whole, as plain value and as signal. */
  revision = -1;
  readonly shownRevision = signal(-1);

  readonly session: Session;
  readonly #entries = new Map<string, Entry>();
  #selected: Entry | undefined;
  #reading: Promise<void> = Promise.resolve();

  constructor(docId: string) {
    this.session = new Session(docId);
  }

  entry(id: string): Entry {
    let entry = this.#entries.get(id);
    if (entry === undefined) {
      const state = signal<BlockState | undefined>(undefined);
      entry = {
        id,
        state,
        isSelected: signal(false),
        isEditing: signal(false),
        isGone: signal(false),
      };
      this.#entries.set(id, entry);
    }
    return entry;
  }

  /** Select a block; "" selects none. */
  select(id: string): void {
    if (this.#selected?.id === id) return;
    batch(() => {
      if (this.#selected) this.#selected.isSelected.value = false;
      this.#selected = id === "" ? undefined : this.entry(id);
      this.selected.value = id;
      if (this.#selected) this.#selected.isSelected.value = true;
    });
  }

  /** Remove a block that was kept on the page only for what was typed into it. */
  forget(entry: Entry): void {
    entry.isEditing.value = false;
    if (!entry.isGone.value) return;
    this.order.value = this.order.value.filter((id) => id !== entry.id);
    this.#entries.delete(entry.id);
  }

  /** Follow the document until the signal aborts or it is gone: ask for changes, and wait, again and again. */
  async follow(until: AbortSignal): Promise<void> {
    let pauseMs = EVERY_MS;
    while (!until.aborted) {
      try {
        await this.refresh(until);
        pauseMs = EVERY_MS;
      } catch (error) {
        if (until.aborted) return;
        this.problem.value = error;
        if (isFinal(error)) return;
        pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
      }
      await pause(pauseMs, until);
    }
  }

  /** Read what changed since the last time; calls wait for each other. */
  refresh(until?: AbortSignal): Promise<void> {
    const next = this.#reading.then(() => this.#refresh(until));
    this.#reading = next.catch(() => undefined);
    return next;
  }

  async #refresh(until?: AbortSignal): Promise<void> {
    const since = this.revision < 0 ? {} : { since: this.revision };
    const changes = await this.session.call<Changes>("doc/changes", () => since, until);
    this.problem.value = undefined;
    const isFirst = this.revision < 0;
    if (changes.order !== undefined && isFirst) {
      await this.#readFirst(changes, changes.order, until);
    } else if (changes.order !== undefined) {
      const states = await this.#read(changes.changed ?? [], until);
      // At once: half of a change is no state of the document.
      batch(() => {
        this.#apply(changes, changes.order!);
        this.#show(states);
        this.#isAt(changes.revision);
      });
    }
    this.#isAt(changes.revision);
    this.isOpen.value = true;
  }

  #isAt(revision: number): void {
    this.revision = revision;
    this.shownRevision.value = revision;
  }

  /** Read all blocks. The first of a long document are shown before the others. */
  async #readFirst(changes: Changes, order: string[], until?: AbortSignal): Promise<void> {
    const changed = changes.changed ?? [];
    this.#apply(changes, order);
    this.#show(await this.#read(changed.slice(0, FIRST_READ), until));
    this.isOpen.value = true;
    for (let start = FIRST_READ; start < changed.length; start += BLOCKS_A_READ) {
      this.#show(await this.#read(changed.slice(start, start + BLOCKS_A_READ), until));
    }
  }

  #apply(changes: Changes, order: string[]): void {
    const present = new Set(order);
    const shown = [...order];
    batch(() => {
      // What is gone goes, but for what is being edited here, which stays where it was.
      this.order.value.forEach((id, place) => {
        const entry = this.entry(id);
        if (present.has(id)) return;
        if (entry.isEditing.value) {
          entry.isGone.value = true;
          shown.splice(Math.min(place, shown.length), 0, id);
        } else {
          if (this.#selected?.id === id) this.select("");
          this.#entries.delete(id);
        }
      });
      if (!isEqual(this.order.value, shown)) this.order.value = shown;
      this.style.value = changes.style ?? {};
      this.references.value = changes.reference ?? [];
      this.labels.value = changes.labels ?? {};
      this.numbers.value = new Map((changes.cited ?? []).map((id, place) => [id, place + 1]));
    });
  }

  async #read(blockIds: string[], until?: AbortSignal): Promise<BlockState[]> {
    const states: BlockState[] = [];
    for (let start = 0; start < blockIds.length; start += BLOCKS_A_READ) {
      const body = { blockIds: blockIds.slice(start, start + BLOCKS_A_READ) };
      const read = await this.session.call<{ blocks: BlockState[] }>(
        "doc/read-blocks",
        () => body,
        until,
      );
      states.push(...read.blocks);
    }
    return states;
  }

  #show(states: readonly BlockState[]): void {
    batch(() => {
      for (const { block, style, text } of states) {
        this.entry(block.id).state.value = { block, style, text };
      }
    });
  }
}

function isEqual(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((id, place) => id === other[place]);
}

/** Wait, and for as long as the tab is hidden; return at once when the signal aborts. */
function pause(ms: number, until: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let isOver = false;
    const timer = setTimeout(() => {
      isOver = true;
      look();
    }, ms);
    function look(): void {
      if (!until.aborted && (!isOver || document.hidden)) return;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
      until.removeEventListener("abort", look);
      resolve();
    }
    document.addEventListener("visibilitychange", look);
    until.addEventListener("abort", look);
    look();
  });
}
