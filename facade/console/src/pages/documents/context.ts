// What the parts of an open document share.
import type { Signal } from "@preact/signals";
import type { EditorView } from "prosemirror-view";
import { createContext } from "preact";
import { useContext } from "preact/hooks";

import type { Assistant } from "./assist/assistant";
import type { CitationStyle } from "./citations";
import type { OpenDocument } from "./document";
import type { Edits } from "./edits";
import type { Sync } from "./prose/sync";
import type { Suggestions } from "./suggestions";
import type { Lost } from "./types";

export interface Shared {
  readonly document: OpenDocument;
  readonly edits: Edits;
  readonly sync: Sync;
  readonly suggestions: Suggestions;
  readonly assistant: Assistant;
  readonly citations: Signal<CitationStyle>;
  /** The text of the document. */
  readonly text: Signal<EditorView | undefined>;
  /** The text in which is being written: that of the document, or one in a form. */
  readonly focused: Signal<EditorView | undefined>;
  /** What the last conversion left out. */
  readonly lost: Signal<readonly Lost[]>;
  /** Counts the changes of what is written and selected, for what shows the marks of the selection. */
  readonly changes: Signal<number>;
}

const SharedContext = createContext<Shared | undefined>(undefined);

export const ShareDocument = SharedContext.Provider;

export function useDocument(): Shared {
  const shared = useContext(SharedContext);
  if (shared === undefined) throw new Error("no document is open here");
  return shared;
}
