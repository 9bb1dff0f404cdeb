// Answers as they come.
import { effect, signal } from "@preact/signals";

import { answerEvents } from "../../api/answer_events";
import { ApiError, send } from "../../api/client";
import { onForget, userId } from "../../shell/session";
import { chatWords } from "../../words/chat";
import { costOf } from "./cost";
import type { AssistantTurn, Attempt, Facts, Fault, Turn } from "./conversation";
import type { Dialect } from "./dialect";
import { DIALECTS } from "./dialects";
import { store } from "./history";
import type { Settings } from "./settings";
import {
  changeBranch,
  loadedBranches,
  newBranch,
  setLast,
  setTurns,
  settings,
  showBranches,
  shownBranch,
  turns,
  withoutItems,
} from "./store";

// Milliseconds between two looks of an answer that grows: each renders its Markdown again.
const SHOWN_EVERY_MS = 50;

const running = new Set<AbortController>();

/** Whether answers are being written. */
export const isRunning = signal(false);

/** Abort the answers that are being written; the gateway cancels them at their providers. */
export function stop(): void {
  for (const controller of running) controller.abort();
}

/** Wait until no answer is being written. */
export function ended(): Promise<void> {
  return new Promise((resolve) => {
    const dispose = effect(() => {
      if (!isRunning.value) queueMicrotask(() => (dispose(), resolve()));
    });
  });
}

onForget(stop);

/** Send a conversation, and add the answer as it comes; throws SettingError before anything is sent. */
export async function run(conversation: readonly Turn[]): Promise<void> {
  const request = requestOf(settings.value, conversation);
  const turn = newAnswer(settings.value.model);
  setTurns([...place(conversation, settings.value.model), copyOf(turn)]);
  store();
  await whileRunning(async () => {
    if (!(await follow(request.dialect, turn, request.begin, setLast))) return;
    setLast({ ...turn });
    store();
  });
}

/** A request that is sent when `begin` is called. */
export interface Request {
  dialect: Dialect;
  begin: (signal: AbortSignal) => Promise<Response>;
}

/** Return a request; throws SettingError. */
export function requestOf(asked: Settings, conversation: readonly Turn[]): Request {
  const dialect = DIALECTS[asked.dialect];
  const json = { ...dialect.body(asked, conversation), ...dialect.streamed };
  const headers: Record<string, string> = { "compat-version": "2023-06-01" };
  const begin = (signal: AbortSignal): Promise<Response> =>
    send(dialect.path, { method: "POST", json, headers, signal });
  return { dialect, begin };
}

export function newAnswer(model: string): AssistantTurn {
  return { role: "assistant", blocks: [], facts: { model }, state: "streaming" };
}

/** Return an answer as it is now: it changes while it comes, and what is shown and stored does not. */
export function copyOf(turn: AssistantTurn): AssistantTurn {
  return { ...turn, blocks: turn.blocks.map((block) => ({ ...block })) };
}

/** Do something during which answers are being written. */
export async function whileRunning(work: () => Promise<void>): Promise<void> {
  isRunning.value = true;
  try {
    await work();
  } finally {
    isRunning.value = false;
  }
}

/**
 * Return the turns of a conversation as those of the branch that is shown.
 *
 * Where it replaces turns with content, a new branch is shown first, and they stay in theirs.
 */
export function place(conversation: readonly Turn[], model: string): readonly Turn[] {
  const before = turns.value;
  const at = before.findIndex((turn, index) => conversation[index] !== turn);
  const replaced = at < 0 ? [] : before.slice(at);
  if (!replaced.some((turn) => turn.role === "user" || turn.blocks.length > 0)) {
    changeBranch(shownBranch.value, { model });
    return conversation;
  }
  const branch = newBranch(at, model);
  const placed = [...withoutItems(conversation.slice(0, at)), ...conversation.slice(at)];
  showBranches([...loadedBranches(), branch], branch.key, placed);
  return placed;
}

/** Go on with an answer in the background that was cut when the page was left. */
export async function resume(): Promise<void> {
  const last = turns.value.at(-1);
  if (last?.role !== "assistant" || last.state !== "cut" || isRunning.value) return;
  const { responseId } = last;
  if (responseId === undefined) return;
  const { model } = last.facts;
  const turn: AssistantTurn = {
    ...last,
    blocks: [],
    facts: model === undefined ? {} : { model },
    state: "streaming",
  };
  setLast(copyOf(turn));
  await whileRunning(async () => {
    const begin = (signal: AbortSignal): Promise<Response> =>
      send(`${addressOf(responseId)}?stream=true`, { signal });
    if (!(await follow(DIALECTS.responses, turn, begin, setLast))) return;
    setLast({ ...turn });
    store();
  });
}

const addressOf = (responseId: string): string =>
  `/v1/responses/${encodeURIComponent(responseId)}`;

/**
 * Show an answer as it comes, up to its end; return whether it is to be kept.
 *
 * Nothing is kept of an answer that ended by the sign-out, also where somebody else came after.
 */
export async function follow(
  dialect: Dialect,
  turn: AssistantTurn,
  begin: (signal: AbortSignal) => Promise<Response>,
  show: (turn: AssistantTurn) => void,
): Promise<boolean> {
  const controller = new AbortController();
  const asker = userId.value;
  running.add(controller);
  const began = performance.now();
  try {
    await stream(dialect, turn, () => begin(controller.signal), began, show);
    turn.state = "done";
  } catch (error) {
    if (controller.signal.aborted) {
      turn.state = "stopped";
      if (userId.value === asker) await cancel(turn.responseId);
    } else {
      turn.state = "failed";
      turn.fault = toFault(error);
    }
  }
  running.delete(controller);
  turn.facts.totalMs = performance.now() - began;
  turn.facts.cost ??= await costOf(turn.facts);
  return userId.value === asker;
}

/** Cancel a response in the background, which goes on without a reader. */
async function cancel(responseId: string | undefined): Promise<void> {
  if (responseId === undefined) return;
  await send(`${addressOf(responseId)}/cancel`, { method: "POST" }).catch(() => undefined);
}

async function stream(
  dialect: Dialect,
  turn: AssistantTurn,
  begin: () => Promise<Response>,
  began: number,
  show: (turn: AssistantTurn) => void,
): Promise<void> {
  const response = await begin();
  Object.assign(turn.facts, factsOf(response.headers));
  let shownAt = -SHOWN_EVERY_MS;
  let later: number | undefined;
  const showNow = (): void => {
    later = undefined;
    shownAt = performance.now();
    show(copyOf(turn));
  };
  try {
    for await (const event of answerEvents(response)) {
      dialect.read(turn, event);
      if (turn.facts.firstMs === undefined && turn.blocks.length > 0) {
        turn.facts.firstMs = performance.now() - began;
      }
      const wait = SHOWN_EVERY_MS - (performance.now() - shownAt);
      if (later === undefined) later = window.setTimeout(showNow, Math.max(0, wait));
    }
  } finally {
    window.clearTimeout(later);
  }
}

function factsOf(headers: Headers): Facts {
  const facts: Facts = {};
  const take = (
    name: "model" | "provider" | "step" | "dropped" | "adapted" | "requestId",
    header: string,
  ): void => {
    const value = headers.get(header);
    if (value) facts[name] = readable(value);
  };
  take("model", "x-gateway-model");
  take("provider", "x-gateway-provider");
  take("step", "x-gateway-step");
  take("dropped", "x-gateway-dropped");
  take("adapted", "x-gateway-adapted");
  take("requestId", "x-request-id");
  const attempts = Number(headers.get("x-gateway-attempts"));
  if (attempts > 0) facts.attempts = attempts;
  const failed = headers.get("x-gateway-failed-attempts");
  if (failed) facts.failed = failed.split(", ").map(toAttempt);
  return facts;
}

/** Return an attempt that a header describes: `model;step=…;status=…;reason=…;ms=…`. */
function toAttempt(item: string): Attempt {
  const [model = "", ...pairs] = item.split(";");
  const given = new Map(pairs.map((pair) => pair.split("=") as [string, string]));
  const status = given.get("status");
  return {
    model: readable(model),
    step: readable(given.get("step") ?? ""),
    status: status === undefined ? null : Number(status),
    reason: given.get("reason") ?? "",
    ms: Number(given.get("ms") ?? 0),
  };
}

/** Return a name of a header, whose other characters are percent-encoded. */
function readable(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

function toFault(error: unknown): Fault {
  const known =
    error instanceof ApiError
      ? error
      : new ApiError(chatWords.brokeOff, 0);
  const { message, status, code, param, requestId } = known;
  return { message, status, code, param, requestId, attempts: [...known.attempts] as Attempt[] };
}
