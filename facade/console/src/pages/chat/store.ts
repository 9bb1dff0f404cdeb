// The conversation, message and settings of this tab. They stay in its session storage, within
// bounds, and go with the sign-out.
import { signal } from "@preact/signals";

import { currentChat, setCurrentChat } from "../../chats/chats";
import { isLeaving, onLeave } from "../../shell/leaving";
import { onForget, userId } from "../../shell/session";
import { type Branch, FIRST, branchOf, parentOf } from "./branches";
import type { AssistantTurn, Turn, UserTurn } from "./conversation";
import { DEFAULTS, type Settings } from "./settings";

const TURNS = "gateway.playground.turns";
const SETTINGS = "gateway.playground.settings";
const MESSAGE = "gateway.playground.message";
const BRANCHES = "gateway.playground.branches";
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

/** The turns of the branch that is shown. */
export const turns = signal<readonly Turn[]>(keptTurns());
const kept = read(BRANCHES) as { shown: string; all: Branch[] } | null;
/** The branches of the chat, the oldest first. */
export const branches = signal<readonly Branch[]>(
  kept?.all ?? [{ ...FIRST, conversation: currentChat.value, root: currentChat.value }],
);
/** Key of the branch that is shown. */
export const shownBranch = signal(kept?.shown ?? FIRST.key);
setCurrentChat(currentBranch().conversation, currentBranch().root);
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

export function currentBranch(): Branch {
  return branchOf(branches.value, shownBranch.value) ?? FIRST;
}

/** Show other branches, or one of them that has been loaded. */
export function showBranches(all: readonly Branch[], key: string, shown: readonly Turn[]): void {
  branches.value = all;
  shownBranch.value = key;
  const { conversation, root } = currentBranch();
  setCurrentChat(conversation, root);
  setTurns(shown);
}

/** Show a chat that is not stored yet. */
export function showNewChat(shown: readonly Turn[] = []): void {
  const first = { ...FIRST, key: crypto.randomUUID() };
  showBranches([first], first.key, shown);
}

/** Return the branches with the turns of each that this tab has. */
export function loadedBranches(): Branch[] {
  return branches.value.map((branch) =>
    branch.key === shownBranch.value ? { ...branch, turns: turns.value } : branch,
  );
}

/** Return the turns of a branch; undefined where they have not been loaded. */
export function turnsOf(key: string): readonly Turn[] | undefined {
  return key === shownBranch.value ? turns.value : branchOf(branches.value, key)?.turns;
}

/** Change what is known of a branch. */
export function changeBranch(key: string, changes: Partial<Branch>): void {
  const { turns: changed, ...others } = changes;
  const isShown = key === shownBranch.value;
  branches.value = branches.value.map((branch) =>
    branch.key === key ? { ...branch, ...(isShown ? others : changes) } : branch,
  );
  if (!isShown) return keepBranches();
  const { conversation, root } = currentBranch();
  setCurrentChat(conversation, root);
  setTurns(changed ?? turns.value);
}

/** Return a new branch that shares the first turns with the one that is shown; it is not stored. */
export function newBranch(at: number, model: string): Branch {
  const parent = parentOf(branches.value, shownBranch.value, at);
  const { root } = parent;
  return { key: crypto.randomUUID(), conversation: "", root, parent: parent.key, at, model };
}

/** Return turns that no item is stored of. */
export function withoutItems(some: readonly Turn[]): Turn[] {
  return some.map((turn) => ({ ...turn, itemIds: [] }));
}

/** Note that items of a turn are stored; return false where it is no longer part of the branch. */
export function markStored(
  key: string,
  index: number,
  turn: Turn,
  itemIds: readonly string[],
): boolean {
  const stored = turnsOf(key);
  if (stored?.[index] !== turn) return false;
  const marked = { ...turn, itemIds: [...(turn.itemIds ?? []), ...itemIds] };
  changeBranch(key, { turns: stored.map((each, place) => (place === index ? marked : each)) });
  return true;
}

function isStreaming(): boolean {
  const last = turns.value.at(-1);
  return last?.role === "assistant" && last.state === "streaming";
}

function keep(): void {
  if (isLeaving()) return;
  const written = turns.value.map((turn) => JSON.stringify(turn, withoutImages));
  let size = written.reduce((sum, text) => sum + text.length + 1, 2);
  while (size > MAX_KEPT) size -= (written.shift()?.length ?? size) + 1;
  write(TURNS, `[${written.join(",")}]`);
  keepBranches();
}

/** Leave out images, for which the storage of a tab has no room. */
function withoutImages(name: string, value: unknown): unknown {
  const isImage = name === "address" && typeof value === "string" && value.startsWith("data:");
  return isImage ? "" : value;
}

/** Keep the branches; of those that are stored the turns can be loaded again. */
function keepBranches(): void {
  const all = JSON.stringify(branches.value, withoutImages);
  const text =
    all.length <= MAX_KEPT
      ? all
      : JSON.stringify(
          branches.value.map((branch) =>
            branch.conversation === "" ? branch : { ...branch, turns: undefined },
          ),
        );
  write(BRANCHES, `{"shown":${JSON.stringify(shownBranch.value)},"all":${text}}`);
}

/** Return the kept turns. An answer that was being written when the page was left is cut. */
function keptTurns(): readonly Turn[] {
  const written = read(TURNS);
  if (!Array.isArray(written)) return [];
  return (written as Turn[]).map((turn) => (turn.role === "user" ? turn : cut(turn)));
}

/** Return an answer of an earlier visit, which nobody is writing any more. */
export function cut(turn: AssistantTurn): AssistantTurn {
  return turn.state === "streaming" ? { ...turn, state: "cut" } : turn;
}

export function read(name: string): unknown {
  try {
    return JSON.parse(sessionStorage.getItem(name) ?? "null");
  } catch {
    return null;
  }
}

export function write(name: string, text: string): void {
  try {
    sessionStorage.setItem(name, text);
  } catch {
    // The browser has no more room: the page works on without.
    sessionStorage.removeItem(name);
  }
}

// A reload in the middle of an answer keeps what has come of it. The browser then ends its request,
// which is no failure of the answer.
onLeave(() => {
  if (userId.value !== "" && isStreaming()) keep();
});

// Whoever signs in next in this tab finds nothing; the sign-out empties the storage.
onForget(() => {
  turns.value = [];
  branches.value = [FIRST];
  shownBranch.value = FIRST.key;
  settings.value = DEFAULTS;
  message.value = EMPTY;
});
