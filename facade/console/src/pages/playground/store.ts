// The conversation, message and settings of this tab. They stay in its session storage, within
// bounds, and go with the sign-out.
import { signal } from "@preact/signals";

import { onForget, userId } from "../../shell/session";
import type { AssistantTurn, Turn, UserTurn } from "./conversation";
import { DEFAULTS, type Settings } from "./settings";

const TURNS = "gateway.playground.turns";
const SETTINGS = "gateway.playground.settings";
const MESSAGE = "gateway.playground.message";
// Characters of a kept conversation; the oldest turns of a longer one are left out.
const MAX_KEPT = 1_000_000;

/** The message that is being written. */
export interface Message extends UserTurn {
  /** Index of the turn that it replaces; what follows that turn goes when it is sent. */
  edited?: number;
  /** What was being written before the edit began. */
  before?: UserTurn;
}

export const EMPTY: Message = { role: "user", text: "", attachments: [] };

export const turns = signal<readonly Turn[]>(keptTurns());
export const settings = signal<Settings>({ ...DEFAULTS, ...(read(SETTINGS) as Settings) });
export const message = signal<Message>({ ...EMPTY, ...(read(MESSAGE) as Message) });

export function change(changes: Partial<Settings>): void {
  settings.value = { ...settings.value, ...changes };
  write(SETTINGS, JSON.stringify(settings.value));
}

export function setMessage(now: Message): void {
  message.value = now;
  write(MESSAGE, JSON.stringify(now));
}

/** Return the turns before the message, as they are now. */
export function turnsBefore(): readonly Turn[] {
  const { edited } = message.value;
  return edited === undefined ? turns.value : turns.value.slice(0, edited);
}

/** Leave an edit: what was being written before is there again. */
export function leaveEdit(): void {
  setMessage(message.value.before ?? EMPTY);
}

/** Show turns, and keep them where none of them is still being written. */
export function setTurns(now: readonly Turn[]): void {
  turns.value = now;
  if (!isStreaming()) keep();
}

/** Replace the last turn. */
export function setLast(turn: AssistantTurn): void {
  setTurns([...turns.value.slice(0, -1), turn]);
}

/** Note that items of a turn are stored; return false where it is no longer part of the chat. */
export function markStored(index: number, turn: Turn, itemIds: readonly string[]): boolean {
  if (turns.value[index] !== turn) return false;
  const marked = { ...turn, itemIds: [...(turn.itemIds ?? []), ...itemIds] };
  setTurns(turns.value.map((each, place) => (place === index ? marked : each)));
  return true;
}

function isStreaming(): boolean {
  const last = turns.value.at(-1);
  return last?.role === "assistant" && last.state === "streaming";
}

let isLeft = false;

function keep(): void {
  if (isLeft) return;
  const written = turns.value.map((turn) => JSON.stringify(turn));
  let size = written.reduce((sum, text) => sum + text.length + 1, 2);
  while (size > MAX_KEPT) size -= (written.shift()?.length ?? size) + 1;
  write(TURNS, `[${written.join(",")}]`);
}

/** Return the kept turns. An answer that was being written when the page was left is cut. */
function keptTurns(): readonly Turn[] {
  const kept = read(TURNS);
  if (!Array.isArray(kept)) return [];
  return (kept as Turn[]).map((turn) =>
    turn.role === "assistant" && turn.state === "streaming" ? { ...turn, state: "cut" } : turn,
  );
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

// A reload in the middle of an answer keeps what has come of it. The browser then ends its request,
// which is no failure of the answer.
window.addEventListener("pagehide", () => {
  if (userId.value !== "" && isStreaming()) keep();
  isLeft = true;
});
window.addEventListener("pageshow", () => {
  isLeft = false;
});

// Whoever signs in next in this tab finds nothing; the sign-out empties the storage.
onForget(() => {
  turns.value = [];
  settings.value = DEFAULTS;
  message.value = EMPTY;
});
