// Edits of an open document, which are undone and redone by the API.
import { signal } from "@preact/signals";

import { editsWords } from "../../words/documents/edits";
import { REVISION_IS_STALE, hasCode } from "./articles";
import type { OpenDocument } from "./document";
import {
  type Block,
  type BlockContent,
  HEADING_TYPES,
  type Lost,
  type NewBlock,
  type Reference,
} from "./types";

const { names } = editsWords;

const ATTEMPTS = 5;

/** The block of an edit was changed or deleted since the editing of it began. */
export class ConflictError extends Error {
  constructor(isGone: boolean) {
    super(isGone ? editsWords.gone : editsWords.changed);
  }
}

/** What a table becomes, as `table/edit` takes it. */
export interface TableEdit {
  action: string;
  row?: number;
  column?: number;
  rows?: number;
  columns?: number;
}

/** What an import made, and what documents do not hold of it. */
export interface Imported {
  ids: string[];
  lost: Lost[];
}

type Answer = { revision: number; ids: string[]; id: string; suggestionId: string };

export class Edits {
  /** What `undo` takes back, and `redo` does again; "" for nothing. */
  readonly undoable = signal("");
  readonly redoable = signal("");
  /** Why the last edit that was attempted failed. */
  readonly failure = signal<unknown>(undefined);
  /** Names of the edits that this tab made, and of those that it took back. */
  #done: string[] = [];
  #undone: string[] = [];
  /** The edit that runs; keys are pressed faster than edits are answered. */
  #running: Promise<unknown> = Promise.resolve();

  /** Saves what is being typed, which an edit comes after. */
  before: () => Promise<void> = () => Promise.resolve();
  /** Returns the id of a block as the server has it, which may be other than that it had here. */
  nameOf: (id: string) => string = (id) => id;

  constructor(readonly document: OpenDocument) {}

  /** Perform an action whose failure is shown above the document. */
  async attempt(act: () => Promise<unknown>): Promise<void> {
    this.failure.value = undefined;
    try {
      await act();
    } catch (failure) {
      this.failure.value = failure;
    }
  }

  /** Take back the last edit made in this tab; one that others edited over is refused. */
  undo(): Promise<void> {
    return this.#reverseInTurn(false);
  }

  redo(): Promise<void> {
    return this.#reverseInTurn(true);
  }

  /** Remember an edit that another part of the page made in the document's session. */
  made(name: string): void {
    this.#done.push(name);
    this.#undone = [];
    this.#show();
  }

  /** Replace what a block holds; `base` is the block that the caller started from. */
  async replace(base: Block, fields: BlockContent): Promise<void> {
    const body = () => ({ ...fields, blockId: base.id });
    await this.#edit("block/text/replace", body, names.change, base);
  }

  /** Insert blocks behind one, or at the beginning for ""; return the id of the first. */
  async insert(after: string, blocks: NewBlock[]): Promise<string> {
    const body = () => ({ path: [this.#place(after) + 1], blocks });
    const { ids } = await this.#edit("block/insert", body, names.insertion);
    return ids[0] ?? "";
  }

  /** Insert a text in another format behind a block, or at the beginning for "". */
  async importText(format: string, text: string, after: string, name: string): Promise<Imported> {
    const body = () => ({ format, text, position: this.#place(after) + 1 });
    return (await this.#edit("doc/import", body, name)) as unknown as Imported;
  }

  /** Move a block, or the section that it heads, before another, or to the end for "". */
  async move(id: string, before: string, isSection = false): Promise<void> {
    const body = () => ({
      blockId: id,
      ...(before === "" ? { path: [this.#ids().length] } : { beforeId: before }),
      ...(isSection ? { section: true } : {}),
    });
    await this.#edit("block/move", body, isSection ? names.moveOfSection : names.moveOfBlock);
  }

  /** Move a block above or below another; a heading takes its section along. */
  async moveBeside(here: string, there: string, isAbove: boolean): Promise<void> {
    await this.before();
    const [id, other] = [this.nameOf(here), this.nameOf(there)];
    const ids = this.#ids();
    const before = isAbove ? other : (ids[ids.indexOf(other) + 1] ?? "");
    if (before === id) return;
    await this.move(id, before, HEADING_TYPES.includes(this.#block(id).type));
  }

  /** Change the type of a block, which keeps its text and its id; return that of the first result. */
  async convert(id: string, type: string): Promise<string> {
    const body = () => ({ blockIds: [this.nameOf(id)], type });
    const { ids } = await this.#edit("block/convert", body, names.type);
    return ids[0] ?? id;
  }

  /** Change the rows, columns or cells of a table. */
  async editTable(base: Block, edit: TableEdit): Promise<void> {
    const body = () => ({ ...edit, blockId: base.id });
    await this.#edit("table/edit", body, names.table, base);
  }

  /** Replace a text wherever it is in the document, or in one block; return in how many blocks. */
  async replaceText(old: string, by: string, blockId?: string): Promise<number> {
    const edits = [{ old, new: by, all: true }];
    const body = () => ({ edits, ...(blockId === undefined ? {} : { blockId }) });
    const answer = await this.#edit("block/text/edit", body, names.replacement);
    return (answer as unknown as { changed: string[] }).changed.length;
  }

  /** Make the document what it was at a revision. */
  async restore(revision: number): Promise<void> {
    await this.before();
    await this.document.session.call("history/restore", () => ({ revision }));
    this.made(names.restoration);
    await this.document.refresh();
  }

  /** Cite a reference with all of a block's text; null clears its citations. */
  async cite(blockId: string, cite: string | null): Promise<void> {
    await this.#edit("block/cite", () => ({ blockId, cite }), names.citation);
  }

  /** Set the label of a block; null takes it away. */
  async label(blockId: string, label: string | null): Promise<void> {
    await this.#edit("block/text/replace", () => ({ blockId, label }), names.label);
  }

  /** Change properties of a block; null takes one away. */
  async restyle(blockId: string, properties: Record<string, unknown>): Promise<void> {
    const body = () => ({ ...properties, blockId });
    await this.#edit("block/style", body, names.style);
  }

  /** Merge a style into the document's; null takes a part away. */
  async restyleArticle(style: Record<string, unknown>): Promise<void> {
    await this.#edit("style/article", () => ({ style }), names.documentStyle);
  }

  async addReference(reference: Omit<Reference, "id">): Promise<string> {
    const body = () => ({ reference });
    return (await this.#edit("reference/add", body, names.addReference)).id;
  }

  async updateReference(reference: object): Promise<void> {
    await this.#edit("reference/update", () => ({ reference }), names.updateReference);
  }

  async deleteReference(referenceId: string): Promise<void> {
    const body = () => ({ referenceId });
    await this.#edit("reference/delete", body, names.deleteReference);
  }

  /** Perform edits as one, made anew for each attempt. */
  async apply(edits: () => object[], name: string): Promise<void> {
    await this.#edit("edits/apply", () => ({ edits: edits() }), name);
  }

  /** Suggest edits, to be accepted or rejected as one; return the id of the suggestion. */
  async suggest(edits: () => object[]): Promise<string> {
    const body = () => ({ edits: edits(), suggest: true });
    return (await this.#edit("edits/apply", body, "")).suggestionId;
  }

  /** Make a suggestion part of the document. */
  async acceptSuggestion(suggestionId: string): Promise<void> {
    await this.before();
    await this.inTurn(async () => {
      await this.document.session.call("suggestion/accept", () => ({ suggestionId }));
      this.made(names.acceptance);
      await this.document.refresh();
    });
  }

  /** Delete a suggestion. */
  async rejectSuggestion(suggestionId: string): Promise<void> {
    await this.document.session.call("suggestion/reject", () => ({ suggestionId }));
  }

  async #reverseInTurn(isRedo: boolean): Promise<void> {
    await this.before();
    await this.inTurn(() => this.#reverse(isRedo));
  }

  /** Run an action after those that were started before it. */
  inTurn<T>(act: () => Promise<T>): Promise<T> {
    const next = this.#running.then(act);
    this.#running = next.catch(() => undefined);
    return next;
  }

  async #reverse(isRedo: boolean): Promise<void> {
    const [from, to] = isRedo ? [this.#undone, this.#done] : [this.#done, this.#undone];
    const name = from.at(-1);
    if (name === undefined) return;
    await this.document.session.call(isRedo ? "history/redo" : "history/undo", () => ({}));
    from.pop();
    to.push(name);
    this.#show();
    await this.document.refresh();
  }

  async #edit(path: string, body: () => object, name: string, base?: Block): Promise<Answer> {
    await this.before();
    return this.inTurn(() => this.#apply(path, body, name, base));
  }

  /**
   * Apply an edit to the revision that is shown.
   *
   * When there is a newer one, the document is read and the edit applied to that, unless `base`,
   * the block as the caller saw it, is not what the block is by then.
   */
  async #apply(path: string, body: () => object, name: string, base?: Block): Promise<Answer> {
    for (let attempt = 1; ; attempt += 1) {
      if (base !== undefined) this.#check(base);
      try {
        const ifRevision = this.document.revision;
        const sent = () => ({ ...body(), ifRevision });
        const answer = await this.document.session.call<Answer>(path, sent);
        // An edit that changes nothing makes no revision, and nothing to take back.
        if (answer.revision !== ifRevision) this.made(name);
        await this.document.refresh();
        return answer;
      } catch (error) {
        if (!hasCode(error, REVISION_IS_STALE) || attempt === ATTEMPTS) throw error;
        await this.document.refresh();
      }
    }
  }

  #check(base: Block): void {
    const entry = this.document.entry(base.id);
    const now = entry.state.value;
    if (now === undefined || entry.isGone.value) throw new ConflictError(true);
    if (!isSame(now.block, base)) throw new ConflictError(false);
  }

  #block(id: string): Block {
    const state = this.document.entry(id).state.value;
    if (state === undefined) throw new ConflictError(true);
    return state.block;
  }

  #place(id: string): number {
    return id === "" ? -1 : this.#ids().indexOf(this.nameOf(id));
  }

  /** The blocks of the document, without those that are kept on the page alone. */
  #ids(): string[] {
    return this.document.order.value.filter((id) => !this.document.entry(id).isGone.value);
  }

  #show(): void {
    this.undoable.value = this.#done.at(-1) ?? "";
    this.redoable.value = this.#undone.at(-1) ?? "";
  }
}

/** Return whether two states of a block are the same, but for its id. */
export function isSame(one: Block, other: Block): boolean {
  return one === other || plain(one) === plain(other);
}

function plain(block: Block): string {
  return JSON.stringify({ ...block, id: "" });
}
