// Whether all that was typed is stored.
import { useDocument } from "../context";
import type { SyncState } from "./sync";

const WORDS: Record<SyncState, string> = {
  saved: "Saved",
  unsaved: "Not saved yet",
  saving: "Saving…",
  failed: "Not saved",
};

export function SaveState() {
  const { sync } = useDocument();
  // Read out only where something is wrong: it changes with every pause.
  const live = sync.state.value === "failed" ? "assertive" : "off";
  return (
    <span class="hint save-state" role="status" aria-live={live} aria-label="State of the text">
      {WORDS[sync.state.value]}
    </span>
  );
}
