// Edits of an open document, each with the one that takes it back.
import { signal } from "@preact/signals";

import { REVISION_IS_STALE, hasCode } from "./articles";
import type { OpenDocument } from "./document";
import {
  type Block,
  CAPTIONED_TYPES,
  type BlockContent,
  LABELLED_TYPES,
  type NewBlock,
  type Reference,
} from "./types";

const ATTEMPTS = 5;
const KEPT = 100;

/** The block of an edit was changed or deleted since the editing of it began. */
export class ConflictError extends Error {
  constructor(isGone: boolean) {
    super(
      isGone
        ? "The block was deleted meanwhile. Nothing has been changed."
        : "The block was changed meanwhile. Nothing has been changed.",
    );
  }
}

interface Step {
  readonly name: string;
  readonly undo: () => Promise<void>;
}

type Answer = { revision: number; ids: string[]; id: string };

export class Edits {
  /** What `undo` would take back; "" for nothing. */
  readonly undoable = signal("");
  readonly #steps: Step[] = [];
  /** Blocks come back under new ids. */
  readonly #renamed = new Map<string, string>();

  constructor(readonly document: OpenDocument) {}

  /** Take back the last edit made here; one that others edited over is refused. */
  async undo(): Promise<void> {
    const step = this.#steps.at(-1);
    if (step === undefined) return;
    await step.undo();
    this.#steps.pop();
    this.#show();
  }

  /** Replace what a block holds; `base` is the block that the caller started from. */
  async replace(base: Block, fields: BlockContent): Promise<void> {
    const { revision } = await this.#replace(base.id, fields, base);
    this.#keepReplaced("the change of a block", base, revision);
  }

  /** Insert blocks behind one, or at the beginning for ""; return the id of the first. */
  async insert(after: string, blocks: NewBlock[]): Promise<string> {
    const ids = await this.#insert(after, blocks);
    const first = ids[0] ?? "";
    this.#keep("the insertion of a block", async () => {
      for (const id of ids) await this.#remove(id);
    });
    return first;
  }

  async remove(id: string): Promise<void> {
    const block = this.#block(id);
    const before = this.#before(id);
    await this.#remove(id, block);
    this.#keep("the deletion of a block", async () => {
      this.#rename(id, (await this.#insert(before, [block]))[0]);
    });
  }

  /**
   * Move a block behind another, or to the beginning for ""; return its new id.
   *
   * The API inserts and deletes: the block is inserted at its new place before it goes at the old,
   * so that whatever fails in between loses nothing.
   */
  async move(id: string, after: string): Promise<string> {
    const from = this.#before(id);
    const moved = await this.#exchange(id, after, this.#block(id));
    this.#keep("the move of a block", async () => {
      const now = this.#current(moved);
      await this.#exchange(now, from, this.#block(now));
    });
    return moved;
  }

  /** Replace a block by one of another type that holds the same text; return its id. */
  async convert(id: string, block: NewBlock): Promise<string> {
    const before = this.#block(id);
    const made = await this.#exchange(id, id, block);
    this.#keep("the change of a type", async () => {
      const now = this.#current(made);
      await this.#exchange(now, now, before);
    });
    return made;
  }

  /** Cite a reference with all of a block's text; null clears its citations. */
  async cite(base: Block, cite: string | null): Promise<void> {
    const body = () => ({ blockId: this.#current(base.id), cite });
    const { revision } = await this.#edit("block/cite", body, base);
    this.#keepReplaced("the citation", base, revision);
  }

  /** Change properties of a block; null takes one away. */
  async restyle(base: Block, properties: Record<string, unknown>): Promise<void> {
    const set = async (changes: object): Promise<void> => {
      await this.#edit("block/style", () => ({ ...changes, blockId: this.#current(base.id) }));
    };
    const before = earlier(base.style ?? {}, properties);
    await set(properties);
    this.#keep("the change of a style", () => set(before));
  }

  /** Merge a style into the document's; null takes a part away. */
  async restyleArticle(style: Record<string, unknown>): Promise<void> {
    const before = earlier(this.document.style.value, style);
    await this.#edit("style/article", () => ({ style }));
    this.#keep("the change of the document's style", async () => {
      await this.#edit("style/article", () => ({ style: before }));
    });
  }

  async addReference(reference: Omit<Reference, "id">): Promise<string> {
    return (await this.#edit("reference/add", () => ({ reference }))).id;
  }

  async updateReference(reference: object): Promise<void> {
    await this.#edit("reference/update", () => ({ reference }));
  }

  async deleteReference(referenceId: string): Promise<void> {
    await this.#edit("reference/delete", () => ({ referenceId }));
  }

  #replace(id: string, fields: object, base: Block): Promise<Answer> {
    const body = () => ({ ...fields, blockId: this.#current(id) });
    return this.#edit("block/text/replace", body, base);
  }

  async #insert(after: string, blocks: NewBlock[]): Promise<string[]> {
    const body = () => ({ path: [this.#place(after) + 1], blocks });
    return (await this.#edit("block/insert", body)).ids;
  }

  async #remove(id: string, base?: Block): Promise<void> {
    await this.#edit("block/delete", () => ({ blockId: this.#current(id) }), base);
  }

  async #exchange(id: string, after: string, block: NewBlock): Promise<string> {
    const base = this.#block(id);
    const [made = ""] = await this.#insert(after, [block]);
    try {
      await this.#remove(id, base);
    } catch (error) {
      await this.#remove(made);
      throw error;
    }
    this.#rename(id, made);
    return made;
  }

  /**
   * Apply an edit to the revision that is shown.
   *
   * When there is a newer one, the document is read and the edit applied to that, unless `base`,
   * the block as the caller saw it, is not what the block is by then.
   */
  async #edit(path: string, body: () => object, base?: Block): Promise<Answer> {
    for (let attempt = 1; ; attempt += 1) {
      if (base !== undefined) this.#check(base);
      try {
        const ifRevision = this.document.revision;
        const sent = () => ({ ...body(), ifRevision });
        const answer = await this.document.session.call<Answer>(path, sent);
        await this.document.refresh();
        return answer;
      } catch (error) {
        if (!hasCode(error, REVISION_IS_STALE) || attempt === ATTEMPTS) throw error;
        await this.document.refresh();
      }
    }
  }

  #check(base: Block): void {
    const entry = this.document.entry(this.#current(base.id));
    const now = entry.state.value;
    if (now === undefined || entry.isGone.value) throw new ConflictError(true);
    if (!isSame(now.block, base)) throw new ConflictError(false);
  }

  #block(id: string): Block {
    const state = this.document.entry(this.#current(id)).state.value;
    if (state === undefined) throw new ConflictError(true);
    return state.block;
  }

  /** The id of the block before one; "" for the first. */
  #before(id: string): string {
    return this.#ids()[this.#ids().indexOf(this.#current(id)) - 1] ?? "";
  }

  #place(id: string): number {
    return id === "" ? -1 : this.#ids().indexOf(this.#current(id));
  }

  /** The blocks of the document, without those that are kept on the page alone. */
  #ids(): string[] {
    return this.document.order.value.filter((id) => !this.document.entry(id).isGone.value);
  }

  #current(id: string): string {
    let now = id;
    for (let next = this.#renamed.get(now); next !== undefined; next = this.#renamed.get(now)) {
      now = next;
    }
    return now;
  }

  #rename(from: string, to: string | undefined): void {
    if (to !== undefined) this.#renamed.set(this.#current(from), to);
  }

  /** Keep the way back to `base`, for as long as the block is what the edit made of it. */
  #keepReplaced(name: string, base: Block, revision: number): void {
    if (!this.document.isAt(revision)) {
      // Another edit came with it: what this one made of the block is not known.
      this.#steps.length = 0;
      this.#show();
      return;
    }
    const after = this.#block(base.id);
    this.#keep(name, async () => {
      await this.#replace(base.id, contentOf(base), after);
    });
  }

  #keep(name: string, undo: () => Promise<void>): void {
    this.#steps.push({ name, undo });
    if (this.#steps.length > KEPT) this.#steps.shift();
    this.#show();
  }

  #show(): void {
    this.undoable.value = this.#steps.at(-1)?.name ?? "";
  }
}

/** What a block holds, as `block/text/replace` takes it. */
export function contentOf(block: Block): BlockContent {
  const content: BlockContent = ownContent(block);
  if (LABELLED_TYPES.includes(block.type)) content.label = block.label ?? null;
  if (CAPTIONED_TYPES.includes(block.type)) content.caption = block.caption ?? null;
  if (block.type === "table") content.align = block.align ?? null;
  return content;
}

function ownContent(block: Block): BlockContent {
  switch (block.type) {
    case "equation":
      return { equation: block.equation ?? "" };
    case "code":
      return { code: block.code ?? "", language: block.language ?? "" };
    case "image":
      return { image: block.image ?? [] };
    case "author":
      return { author: block.author ?? [], institution: block.institution ?? [] };
    default:
      return { children: block.children ?? [] };
  }
}

/** Return whether two states of a block are the same, but for its id. */
export function isSame(one: Block, other: Block): boolean {
  return one === other || plain(one) === plain(other);
}

function plain(block: Block): string {
  return JSON.stringify({ ...block, id: "" });
}

/** Return the patch that takes another one back. */
function earlier(
  before: Record<string, unknown>,
  patch: Record<string, unknown>,
): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(patch)) {
    const was = before[key];
    const isDeeper = isObject(was) && isObject(value);
    made[key] = isDeeper ? earlier(was, value) : (was ?? null);
  }
  return made;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
