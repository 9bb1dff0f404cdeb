// What the parts of an open document share.
import type { Signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";

import type { CitationStyle } from "./citations";
import type { OpenDocument } from "./document";
import type { Edits } from "./edits";

export interface Shared {
  readonly document: OpenDocument;
  readonly edits: Edits;
  readonly citations: Signal<CitationStyle>;
}

const SharedContext = createContext<Shared | undefined>(undefined);

export const ShareDocument = SharedContext.Provider;

export function useDocument(): Shared {
  const shared = useContext(SharedContext);
  if (shared === undefined) throw new Error("no document is open here");
  return shared;
}
