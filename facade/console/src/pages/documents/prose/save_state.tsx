// Whether all that was typed is stored.
import { blocksWords } from "../../../words/documents/blocks";
import { useDocument } from "../context";
import type { SyncState } from "./sync";

const STATES: Readonly<Record<SyncState, string>> = blocksWords.states;

export function SaveState() {
  const { sync } = useDocument();
  // Read out only where something is wrong: it changes with every pause.
  const live = sync.state.value === "failed" ? "assertive" : "off";
  return (
    <span class="hint save-state" role="status" aria-live={live} aria-label={blocksWords.state}>
      {STATES[sync.state.value]}
    </span>
  );
}
