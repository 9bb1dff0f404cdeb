// One question to several models at the same time. Their answers are branches of the chat, of which
// the user goes on with one.
import { signal } from "@preact/signals";

import { isLeaving, onLeave } from "../../shell/leaving";
import { onForget } from "../../shell/session";
import type { AssistantTurn, Turn } from "./conversation";
import { store, switchTo } from "./history";
import { follow, isRunning, newAnswer, place, requestOf, whileRunning } from "./run";
import {
  branches,
  change,
  changeBranch,
  currentBranch,
  cut,
  newBranch,
  read,
  setTurns,
  settings,
  shownBranch,
  turns,
  withoutItems,
  write,
} from "./store";

const COMPARISON = "gateway.playground.comparison";

/** Models that one question goes to, the first one included. */
export const MAX_MODELS = 4;

export interface Column {
  model: string;
  turn: AssistantTurn;
  /** Key of the branch with the answer; "" before the answers are complete, or without content. */
  branch: string;
}

export interface Comparison {
  /** Key of the branch that asked. */
  asker: string;
  /** How many turns come before the answers. */
  at: number;
  columns: readonly Column[];
}

const latest = signal<Comparison | undefined>(kept());

/** Return the comparison that is shown; undefined where none is. */
export function shownComparison(): Comparison | undefined {
  return latest.value?.asker === shownBranch.value ? latest.value : undefined;
}

/** Return whether one of the answers is to be chosen before the chat goes on. */
export function mustChoose(): boolean {
  return shownComparison()?.columns.some(({ branch }) => branch !== "") === true;
}

/** Return the models that are asked: several where answers are compared. */
export function askedModels(): string[] {
  const { model, others } = settings.value;
  return [...new Set([model, ...others].filter((name) => name !== ""))];
}

/** Send a conversation to several models; throws SettingError before anything is sent. */
export async function compare(conversation: readonly Turn[], models: string[]): Promise<void> {
  const asked = models.map((model) => ({
    request: requestOf({ ...settings.value, model }, conversation),
    turn: newAnswer(model),
  }));
  setTurns(place(conversation, models[0]!));
  store();
  set({
    asker: shownBranch.value,
    at: turns.value.length,
    columns: models.map((model) => ({ model, turn: newAnswer(model), branch: "" })),
  });
  await whileRunning(async () => {
    const areKept = await Promise.all(
      asked.map(async ({ request, turn }, index) => {
        const isKept = await follow(request.dialect, turn, request.begin, (now) =>
          setColumn(index, now),
        );
        if (isKept) setColumn(index, { ...turn });
        return isKept;
      }),
    );
    if (areKept.every(Boolean)) keepAnswers();
  });
}

/** Ask a model again of whose answer nothing arrived; throws SettingError before anything is sent. */
export async function askAgain({ model }: Column): Promise<void> {
  const comparison = shownComparison();
  if (comparison === undefined || isRunning.value) return;
  const index = comparison.columns.findIndex((column) => column.model === model);
  const asking = turns.value.slice(0, comparison.at);
  const request = requestOf({ ...settings.value, model }, asking);
  const turn = newAnswer(model);
  setColumn(index, newAnswer(model));
  await whileRunning(async () => {
    const isKept = await follow(request.dialect, turn, request.begin, (now) => setColumn(index, now));
    if (!isKept) return;
    setColumn(index, { ...turn });
    keepAnswers();
  });
}

/** Make branches of the answers that have none: the first of all is of the branch that asked. */
export function keepAnswers(): void {
  const comparison = shownComparison();
  if (comparison === undefined) return;
  const asking = turns.value.slice(0, comparison.at);
  const kept: string[] = [];
  let isFirst = !mustChoose();
  const columns = comparison.columns.map((column): Column => {
    const { model, turn } = column;
    if (column.branch !== "" || !hasContent(turn)) return column;
    let { key } = currentBranch();
    if (isFirst) {
      changeBranch(key, { model, turns: [...asking, turn] });
      isFirst = false;
    } else {
      const branch = newBranch(comparison.at, model);
      branches.value = [...branches.value, { ...branch, turns: [...withoutItems(asking), turn] }];
      key = branch.key;
    }
    kept.push(key);
    return { ...column, branch: key };
  });
  if (kept.length === 0) return;
  set({ ...comparison, columns });
  for (const key of kept) store(key);
}

/** Return whether anything of an answer arrived. */
function hasContent({ blocks }: AssistantTurn): boolean {
  return blocks.some(
    (block) => (block.type !== "text" && block.type !== "thinking") || block.text.trim() !== "",
  );
}

/** Go on with one of the answers; the others stay as branches. */
export async function choose({ model, branch }: Column): Promise<void> {
  await switchTo(branch);
  leave();
  change({ model, others: [] });
}

/** Show the chat without the comparison. */
export function leave(): void {
  latest.value = undefined;
  sessionStorage.removeItem(COMPARISON);
}

function setColumn(index: number, turn: AssistantTurn): void {
  const comparison = latest.value;
  if (comparison === undefined) return;
  const columns = comparison.columns.map((column, place) =>
    place === index ? { ...column, turn } : column,
  );
  set({ ...comparison, columns });
}

function set(comparison: Comparison): void {
  latest.value = comparison;
  const isRunning = comparison.columns.some(({ turn }) => turn.state === "streaming");
  if (!isRunning && !isLeaving()) write(COMPARISON, JSON.stringify(comparison));
}

function kept(): Comparison | undefined {
  const written = read(COMPARISON) as Comparison | null;
  if (written === null) return undefined;
  const columns = written.columns.map((column) => ({ ...column, turn: cut(column.turn) }));
  return { ...written, columns };
}

// What has come of answers when the page is left is kept, as of one answer.
onLeave(() => {
  if (latest.value !== undefined && currentBranch().key === latest.value.asker) {
    write(COMPARISON, JSON.stringify(latest.value));
  }
});

onForget(() => {
  latest.value = undefined;
});
