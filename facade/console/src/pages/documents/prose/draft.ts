// What was typed and is not saved yet, kept in the storage of the tab.
import { Node } from "prosemirror-model";

import type { Blocks, Change } from "./rebase";
import { schema } from "./schema";
import type { Request } from "./sync";

interface Stored {
  order: string[];
  /** Nodes as JSON, by their ids: those that are not as the server has them. */
  nodes: Record<string, unknown>;
}

interface StoredDraft {
  base: Stored;
  mine: Stored;
  conflicts: string[];
  request?: { body: object; changes: Change[]; ifRevision: number; sent: Stored };
}

export interface ReadDraft {
  readonly base: Blocks;
  readonly mine: Blocks;
  readonly conflicts: readonly string[];
  readonly request: Request | undefined;
}

export class Draft {
  readonly #key: string;

  constructor(docId: string) {
    this.#key = `gateway.document-draft.${docId}`;
  }

  exists(): boolean {
    return sessionStorage.getItem(this.#key) !== null;
  }

  forget(): void {
    sessionStorage.removeItem(this.#key);
  }

  keep(base: Blocks, mine: Blocks, request: Request | undefined, conflicts: string[]): void {
    const others = request === undefined ? [mine] : [mine, request.sent];
    const draft: StoredDraft = {
      conflicts,
      base: stored(base, (id, node) => others.every((one) => one.nodes.get(id)?.eq(node))),
      mine: stored(mine, (id, node) => base.nodes.get(id)?.eq(node) ?? false),
    };
    if (request !== undefined) {
      const sent = stored(request.sent, (id, node) => base.nodes.get(id)?.eq(node) ?? false);
      draft.request = { ...request, changes: [...request.changes], sent };
    }
    try {
      sessionStorage.setItem(this.#key, JSON.stringify(draft));
    } catch {
      // The storage is full. The text is on the page, and is saved as soon as it can be.
    }
  }

  /** Return the draft; what it shares with the server is taken from there. */
  read(server: Blocks): ReadDraft | undefined {
    const text = sessionStorage.getItem(this.#key);
    if (text === null) return undefined;
    try {
      const { base, mine, request, conflicts } = JSON.parse(text) as StoredDraft;
      return {
        conflicts,
        base: read(base, server),
        mine: read(mine, server),
        request: request && { ...request, sent: read(request.sent, server) },
      };
    } catch {
      // Of an older version of the page.
      this.forget();
      return undefined;
    }
  }
}

function stored(blocks: Blocks, isShared: (id: string, node: Node) => boolean): Stored {
  const own = [...blocks.nodes].filter(([id, node]) => !isShared(id, node));
  const nodes = Object.fromEntries(own.map(([id, node]) => [id, node.toJSON() as unknown]));
  return { order: [...blocks.order], nodes };
}

function read({ order, nodes }: Stored, server: Blocks): Blocks {
  const made = new Map<string, Node>();
  for (const id of order) {
    const own = nodes[id];
    const node = own === undefined ? server.nodes.get(id) : Node.fromJSON(schema, own);
    if (node !== undefined) made.set(id, node);
  }
  return { order: [...made.keys()], nodes: made };
}
