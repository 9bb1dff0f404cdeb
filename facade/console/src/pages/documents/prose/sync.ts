// What is typed, sent to the API after a short pause, and what others change, brought into the text.
import { batch, effect, signal, untracked } from "@preact/signals";
import { type Node, Slice, Fragment } from "prosemirror-model";
import type { EditorView } from "prosemirror-view";

import { ApiError } from "../../../api/client";
import { editsWords } from "../../../words/documents/edits";
import { REVISION_IS_STALE, hasCode } from "../articles";
import type { OpenDocument } from "../document";
import type { Edits } from "../edits";
import type { Block, BlockState } from "../types";
import { isNew, newId, renamed, renamings, toNode } from "./blocks";
import { Draft } from "./draft";
import {
  type Blocks,
  type Change,
  applied,
  blocksOf,
  changesBetween,
  rebase,
} from "./rebase";
import { positionOf, selectAgain } from "./positions";
import { idOf, schema } from "./schema";

const PAUSE_MS = 600;
const DRAFT_MS = 300;
const RETRY_MS = 3_000;
const ATTEMPTS = 5;
const EDITS_A_REQUEST = 200;
/** Of transactions that bring the server's state in. */
export const FROM_SERVER = "fromServer";

/** Edits on their way: sent again as they are until it is known what became of them. */
export interface Request {
  readonly body: object;
  readonly changes: readonly Change[];
  readonly ifRevision: number;
  /** The blocks as they were sent. */
  readonly sent: Blocks;
}

export type SyncState = "saved" | "unsaved" | "saving" | "failed";

export class Sync {
  readonly state = signal<SyncState>("saved");
  /** Blocks that others changed, or deleted (undefined), where they were changed here, too. */
  readonly conflicts = signal<ReadonlyMap<string, BlockState | undefined>>(new Map());
  #view: EditorView | undefined;
  #base: Blocks = { order: [], nodes: new Map() };
  #request: Request | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #draftTimer: ReturnType<typeof setTimeout> | undefined;
  /** The text as it was when the page was left. */
  #last: Node = schema.nodes["doc"]!.create();
  #isRestored = false;
  /** Why the text could not be saved the last time. */
  #failure: unknown;
  /** The ids that the server gave to blocks, by those that they had here. */
  readonly #names = new Map<string, string>();
  /** All blocks that were read: a copy is made of one that may have been cut since. */
  readonly #blocks = new Map<string, Block>();
  readonly #nodes = new WeakMap<Block, Node>();
  readonly #draft: Draft;
  /** Whether a text was left unsaved. */
  readonly #hasDraft: boolean;

  constructor(
    readonly document: OpenDocument,
    readonly edits: Edits,
  ) {
    this.#draft = new Draft(document.session.docId);
    this.#hasDraft = this.#draft.exists();
    edits.before = () => this.flush();
    edits.nameOf = (id) => this.nameOf(id);
  }

  /** Whether the text may be changed: not before what was left unsaved is in it again. */
  get isReady(): boolean {
    return this.#isRestored || !this.#hasDraft;
  }

  /** Show the document in a view and keep both up to date; return what ends it. */
  follow(view: EditorView): () => void {
    this.#view = view;
    const stop = effect(() => {
      const server = this.#server();
      const isRead = this.document.shownRevision.value >= 0;
      untracked(() => this.#receive(server, isRead));
    });
    const keep = () => this.#keepDraft();
    const hide = () => {
      if (document.hidden) void this.flush().catch(() => undefined);
    };
    window.addEventListener("pagehide", keep);
    document.addEventListener("visibilitychange", hide);
    return () => {
      stop();
      window.removeEventListener("pagehide", keep);
      document.removeEventListener("visibilitychange", hide);
      // Leaving saves; should that fail, the draft is there when the document is opened again.
      this.#last = view.state.doc;
      this.#view = undefined;
      keep();
      void this.flush().catch(() => undefined);
    };
  }

  /** Plan to save, after a transaction that changed something here. */
  changed(): void {
    if (this.#changes().length === 0 && this.#request === undefined) {
      this.#keepDraft();
      this.state.value = "saved";
      return;
    }
    if (this.state.value !== "saving") this.state.value = "unsaved";
    this.#draftTimer ??= setTimeout(() => this.#keepDraft(), DRAFT_MS);
    this.#plan(PAUSE_MS);
  }

  /** Send what was typed; done at once if nothing was. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    return this.edits.inTurn(() => this.#save());
  }

  /** Return the id of a block as the server knows it, which may be other than that it had here. */
  nameOf(id: string): string {
    return this.#names.get(id) ?? id;
  }

  /** Return the block of an id, though it may be deleted by now. */
  original(id: string): Block | undefined {
    return this.#blocks.get(id);
  }

  /** Settle a conflict: with the text as it is here, or as others made it. */
  settle(id: string, isMine: boolean): void {
    const theirs = this.#base.nodes.get(id);
    const mine = this.#mine().children;
    const nodes = mine.flatMap((node) => {
      if (idOf(node) !== id) return [node];
      if (isMine) return [theirs === undefined ? renamed(node, new Map([[id, newId()]])) : node];
      return theirs === undefined ? [] : [theirs];
    });
    const left = new Map(this.conflicts.value);
    left.delete(id);
    batch(() => {
      this.conflicts.value = left;
      this.#show(nodes);
    });
    this.changed();
    this.#view?.focus();
  }

  /** The document as it was read. */
  #server(): Blocks {
    const nodes = this.document.order.value.map((id) => {
      const state = this.document.entry(id).state.value;
      if (state === undefined) return schema.nodes["thing"]!.create({ id, kind: "unread" });
      let node = this.#nodes.get(state.block);
      if (node === undefined) {
        node = toNode(state.block);
        this.#nodes.set(state.block, node);
        this.#blocks.set(id, state.block);
      }
      return node;
    });
    return blocksOf(nodes);
  }

  #mine(): Node {
    return this.#view?.state.doc ?? this.#last;
  }

  /** Bring the state of the server in. Edits on their way may be in it, so they are waited for. */
  #receive(server: Blocks, isRead: boolean): void {
    if (isRead && !this.#isRestored) {
      this.#isRestored = true;
      if (this.#hasDraft && this.#restore(server)) return;
    }
    if (this.#request !== undefined) return;
    if (this.#view?.composing) {
      this.#view.dom.addEventListener("compositionend", () => this.#catchUp(), { once: true });
      return;
    }
    const names = new Map<string, string>();
    for (const [id, node] of server.nodes) {
      const before = this.#base.nodes.get(id);
      if (before === undefined || before === node || before.type !== node.type) continue;
      for (const [here, there] of renamings(before, node)) names.set(here, there);
    }
    this.#rename(names);
    const held = new Set(this.conflicts.value.keys());
    const mine = blocksOf(this.#isUntouched(this.#mine()) ? [] : this.#mine().children);
    const { nodes, conflicts } = rebase(this.#base, mine, server, held);
    this.#base = server;
    batch(() => {
      if (conflicts.length + held.size > 0) {
        this.conflicts.value = this.#statesOf([...held, ...conflicts], server);
      }
      this.#show(nodes);
    });
  }

  /** Return what others made of blocks in conflict. */
  #statesOf(ids: readonly string[], server: Blocks): Map<string, BlockState | undefined> {
    const state = (id: string) =>
      server.nodes.has(id) ? this.document.entry(id).state.value : undefined;
    return new Map(ids.map((id) => [id, state(id)]));
  }

  #catchUp(): void {
    this.#receive(this.#server(), this.document.shownRevision.value >= 0);
  }

  /** Return whether a document without a block has but the empty text that is there to write into. */
  #isUntouched(doc: Node): boolean {
    const [only] = doc.children;
    const isEmpty = only === undefined || (isEmptyNew(only) && only.content.size === 0);
    return this.#base.order.length === 0 && doc.childCount <= 1 && isEmpty;
  }

  /** Return what is to be sent. */
  #changes(doc: Node = this.#mine()): Change[] {
    if (this.#isUntouched(doc)) return [];
    return changesBetween(...this.#compared(doc), (id) => this.#blocks.get(id));
  }

  /** The stored and the present blocks; what is in conflict, or kept for its form alone, is left out. */
  #compared(doc: Node): [Blocks, Blocks] {
    const conflicts = this.conflicts.value;
    const isStored = (id: string) => !this.document.entry(id).isGone.value;
    const base = this.#base.order.filter(isStored).map((id) => this.#base.nodes.get(id)!);
    const mine = doc.children.flatMap((node) => {
      const id = idOf(node);
      if (conflicts.has(id)) return this.#base.nodes.has(id) ? [this.#base.nodes.get(id)!] : [];
      return isNew(id) || isStored(id) ? [node] : [];
    });
    return [blocksOf(base), blocksOf(mine)];
  }

  /** Save, and save again what was typed meanwhile. */
  async #save(): Promise<void> {
    try {
      if (this.document.revision < 0 && this.#changes().length > 0) await this.document.refresh();
      for (let attempt = 1; ; ) {
        const request = (this.#request ??= this.#next(this.#mine()));
        if (request === undefined) break;
        this.state.value = "saving";
        this.#keepDraft();
        try {
          await this.#send(request);
          attempt = 1;
        } catch (error) {
          if (!hasCode(error, REVISION_IS_STALE) || attempt === ATTEMPTS) throw error;
          attempt += 1;
          await this.document.refresh();
        }
      }
      this.state.value = "saved";
      this.#keepDraft();
      if (this.#failure !== undefined && this.edits.failure.value === this.#failure) {
        this.edits.failure.value = undefined;
      }
    } catch (error) {
      this.state.value = "failed";
      this.#failure = error;
      this.edits.failure.value = error;
      if (mayBeStored(error)) this.#plan(RETRY_MS);
      throw error;
    }
  }

  #next(doc: Node): Request | undefined {
    const all = this.#changes(doc);
    if (all.length === 0) return undefined;
    const changes = all.slice(0, EDITS_A_REQUEST);
    // The change of a type and that of the text of one block are made together.
    if (all.length > changes.length && changes.at(-1)!.body.endpoint === "block/convert") {
      changes.pop();
    }
    const ifRevision = this.document.revision;
    const random = crypto.getRandomValues(new Uint32Array(3));
    const requestId = [...random].map((part) => part.toString(36)).join("-");
    const body = { edits: changes.map((change) => change.body), ifRevision, requestId };
    const [, sent] = this.#compared(doc);
    return { body, changes, ifRevision, sent };
  }

  async #send(request: Request): Promise<void> {
    const { session } = this.document;
    let answer: { revision: number; results: { ids?: string[] }[] };
    try {
      answer = await session.call("edits/apply", () => request.body);
    } catch (error) {
      if (!mayBeStored(error)) {
        this.#request = undefined;
        this.#catchUp();
      }
      throw error;
    }
    const names = new Map<string, string>();
    request.changes.forEach(({ inserted = [] }, place) => {
      const ids = answer.results[place]?.ids ?? [];
      inserted.forEach((id, at) => names.set(id, ids[at] ?? id));
    });
    // Blocks that are gone are on the page alone, where they stay.
    this.#base = applied(this.#compared(this.#mine())[0], request.changes, request.sent);
    this.#rename(names);
    this.#request = undefined;
    if (answer.revision !== request.ifRevision) this.edits.made(editsWords.names.typing);
    await this.document.refresh();
    this.#catchUp();
  }

  #rename(names: ReadonlyMap<string, string>): void {
    if (names.size === 0) return;
    for (const [here, there] of names) this.#names.set(here, there);
    const selected = names.get(this.document.selected.value);
    if (selected !== undefined) this.document.select(selected);
    const base = this.#base.order.map((id) => renamed(this.#base.nodes.get(id)!, names));
    this.#base = blocksOf(base);
    this.#show(this.#mine().children.map((node) => renamed(node, names)));
  }

  #plan(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.flush().catch(() => undefined), ms);
  }

  #keepDraft(): void {
    clearTimeout(this.#draftTimer);
    this.#draftTimer = undefined;
    if (!this.isReady) return;
    const mine = blocksOf(this.#mine().children);
    if (this.#request === undefined && this.#changes().length === 0 && this.conflicts.value.size === 0) {
      this.#draft.forget();
    } else {
      this.#draft.keep(this.#base, mine, this.#request, [...this.conflicts.value.keys()]);
    }
  }

  /** Show what was typed before the page was left, and save it; return whether there was any. */
  #restore(server: Blocks): boolean {
    const draft = this.#draft.read(server);
    if (draft === undefined) return false;
    this.#base = draft.base;
    this.#request = draft.request;
    this.conflicts.value = this.#statesOf(draft.conflicts, server);
    this.#show(draft.mine.order.map((id) => draft.mine.nodes.get(id)!));
    if (this.#request === undefined) this.#catchUp();
    this.changed();
    this.#plan(0);
    return true;
  }

  /** Make the document these blocks. The selection stays where it was in the text. */
  #show(nodes: readonly Node[]): void {
    const view = this.#view;
    const old = this.#mine();
    if (view === undefined) {
      this.#last = old.type.create(null, Fragment.from(nodes));
      return;
    }
    const [first] = old.children;
    const toWriteInto = old.childCount === 1 && isEmptyNew(first!) ? first! : emptyText();
    const shown = nodes.length > 0 ? nodes : [toWriteInto];
    let start = 0;
    let [oldEnd, newEnd] = [old.childCount, shown.length];
    while (start < oldEnd && start < newEnd && old.child(start).eq(shown[start]!)) start += 1;
    while (oldEnd > start && newEnd > start && old.child(oldEnd - 1).eq(shown[newEnd - 1]!)) {
      oldEnd -= 1;
      newEnd -= 1;
    }
    if (start === oldEnd && start === newEnd) return;
    const same = blocksOf(old.children).nodes;
    const put = shown.slice(start, newEnd).map((node) => {
      const before = same.get(idOf(node));
      // The same node keeps its element.
      return before?.eq(node) ? before : node;
    });
    const [from, to] = [positionOf(old, start), positionOf(old, oldEnd)];
    const tr = view.state.tr.replace(from, to, new Slice(Fragment.from(put), 0, 0));
    selectAgain(tr, view.state.selection, old, (id) => this.nameOf(id));
    view.dispatch(tr.setStoredMarks(view.state.storedMarks).setMeta(FROM_SERVER, true));
  }
}

/** Return whether the server may have stored an edit that got this answer, or none. */
function mayBeStored(error: unknown): boolean {
  return !(error instanceof ApiError) || error.status === 0 || error.status >= 500;
}

export function emptyText(): Node {
  return schema.nodes["prose"]!.create({ id: newId() });
}

function isEmptyNew(node: Node): boolean {
  return isNew(idOf(node)) && node.type === schema.nodes["prose"];
}
