// The conversation and settings of this tab. They stay in its session storage, within bounds, and go
// with the sign-out.
import { effect, signal } from "@preact/signals";

import { apiKey } from "../../shell/session";
import type { AssistantTurn, Turn } from "./conversation";
import { DEFAULTS, type Settings } from "./settings";

const TURNS = "gateway.playground.turns";
const SETTINGS = "gateway.playground.settings";
// Characters of a kept conversation; the oldest turns of a longer one are left out.
const MAX_KEPT = 1_000_000;

export const turns = signal<readonly Turn[]>(keptTurns());
export const settings = signal<Settings>({ ...DEFAULTS, ...(read(SETTINGS) as Settings) });

export function change(changes: Partial<Settings>): void {
  settings.value = { ...settings.value, ...changes };
  write(SETTINGS, JSON.stringify(settings.value));
}

/** Show turns, and keep them where none of them is still being written. */
export function setTurns(now: readonly Turn[]): void {
  turns.value = now;
  if (!now.some((turn) => turn.role === "assistant" && turn.state === "streaming")) keep();
}

/** Replace the last turn. */
export function setLast(turn: AssistantTurn): void {
  setTurns([...turns.value.slice(0, -1), turn]);
}

function keep(): void {
  const written = turns.value.map((turn) => JSON.stringify(turn));
  let size = written.reduce((sum, text) => sum + text.length + 1, 2);
  while (size > MAX_KEPT) size -= (written.shift()?.length ?? size) + 1;
  write(TURNS, `[${written.join(",")}]`);
}

function keptTurns(): readonly Turn[] {
  const kept = read(TURNS);
  return Array.isArray(kept) ? (kept as Turn[]) : [];
}

function read(name: string): unknown {
  try {
    return JSON.parse(sessionStorage.getItem(name) ?? "null");
  } catch {
    return null;
  }
}

function write(name: string, text: string): void {
  try {
    sessionStorage.setItem(name, text);
  } catch {
    // The browser has no more room: the page works on without.
    sessionStorage.removeItem(name);
  }
}

// Whoever signs in next in this tab finds nothing; the sign-out empties the storage.
effect(() => {
  if (apiKey.value !== "") return;
  turns.value = [];
  settings.value = DEFAULTS;
});
