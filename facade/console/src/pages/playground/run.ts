// Answers as they come.
import { effect, signal } from "@preact/signals";

import { ApiError, send, toError } from "../../api/client";
import { events } from "../../api/events";
import { onForget, userId } from "../../shell/session";
import { costOf } from "./cost";
import type { AssistantTurn, Attempt, Facts, Fault, Turn } from "./conversation";
import type { Dialect } from "./dialect";
import { DIALECTS } from "./dialects";
import { store } from "./history";
import { isObject } from "./settings";
import { setLast, setTurns, settings, turns } from "./store";

// Milliseconds between two looks of an answer that grows: each renders its Markdown again.
const SHOWN_EVERY_MS = 50;

let running: AbortController | undefined;

/** Whether an answer is being written. */
export const isRunning = signal(false);

/** Abort the answer that is being written; the gateway cancels it at the provider. */
export function stop(): void {
  running?.abort();
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
  const dialect = DIALECTS[settings.value.dialect];
  const json = { ...dialect.body(settings.value, conversation), ...dialect.streamed };
  const facts: Facts = { model: settings.value.model };
  const turn: AssistantTurn = { role: "assistant", blocks: [], facts, state: "streaming" };
  setTurns([...conversation, turn]);
  store();
  const headers: Record<string, string> = { "compat-version": "2023-06-01" };
  await follow(dialect, turn, (signal) =>
    send(dialect.path, { method: "POST", json, headers, signal }),
  );
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
  setLast(turn);
  await follow(DIALECTS.responses, turn, (signal) =>
    send(`${addressOf(responseId)}?stream=true`, { signal }),
  );
}

const addressOf = (responseId: string): string =>
  `/v1/responses/${encodeURIComponent(responseId)}`;

/** Show an answer as it comes, up to its end. */
async function follow(
  dialect: Dialect,
  turn: AssistantTurn,
  begin: (signal: AbortSignal) => Promise<Response>,
): Promise<void> {
  const controller = new AbortController();
  const asker = userId.value;
  running = controller;
  isRunning.value = true;
  const began = performance.now();
  try {
    await stream(dialect, turn, () => begin(controller.signal), began);
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
  turn.facts.totalMs = performance.now() - began;
  turn.facts.cost ??= await costOf(turn.facts);
  running = undefined;
  isRunning.value = false;
  // Nothing is kept of an answer that ended by the sign-out, also where somebody else came after.
  if (userId.value !== asker) return;
  setLast({ ...turn });
  store();
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
): Promise<void> {
  const response = await begin();
  Object.assign(turn.facts, factsOf(response.headers));
  let shownAt = -SHOWN_EVERY_MS;
  let later: number | undefined;
  const show = (): void => {
    later = undefined;
    shownAt = performance.now();
    setLast({ ...turn, blocks: turn.blocks.map((block) => ({ ...block })) });
  };
  try {
    for await (const { data } of events(response)) {
      if (data === "[DONE]") continue;
      const event: unknown = JSON.parse(data);
      if (!isObject(event)) continue;
      // What breaks an answer off comes as an event, in the shape of the error of an endpoint.
      if (isObject(event["error"])) throw toError(0, response.headers, data);
      const ended = event["response"];
      if (event["type"] === "response.failed" && isObject(ended)) {
        throw toError(0, response.headers, JSON.stringify(ended));
      }
      dialect.read(turn, event);
      if (turn.facts.firstMs === undefined && turn.blocks.length > 0) {
        turn.facts.firstMs = performance.now() - began;
      }
      const wait = SHOWN_EVERY_MS - (performance.now() - shownAt);
      if (later === undefined) later = window.setTimeout(show, Math.max(0, wait));
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
      : new ApiError("The answer broke off: the connection to the gateway ended.", 0);
  const { message, status, code, param, requestId } = known;
  return { message, status, code, param, requestId, attempts: [...known.attempts] as Attempt[] };
}
