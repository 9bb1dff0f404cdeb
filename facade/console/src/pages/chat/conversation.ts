// A conversation, apart from the dialect in which it is sent.

/** A file of the store that goes with a message. */
export interface Attachment {
  fileId: string;
  name: string;
  /** MIME type as the browser has it, or "". */
  type: string;
}

export interface ToolCall {
  type: "call";
  id: string;
  name: string;
  /** JSON as the model wrote it. */
  arguments: string;
  /** What the user has entered as its result. */
  result?: string;
  /** Fields of a chat's call that go back as they came, such as thought signatures. */
  extra?: Record<string, unknown>;
}

/** What an answer consists of, in the order in which it came. */
export type Block =
  | { type: "text"; text: string }
  | { type: "thinking"; text: string; signature?: string }
  | ToolCall
  /** An image that the model made: a `data:` address, or one on another site; "" if it is not kept. */
  | { type: "image"; address: string }
  /** A block of messages that is sent back as it came: hidden thoughts, calls of built-in tools. */
  | { type: "other"; json: Record<string, unknown> };

/** What each attempt at a provider came to. */
export interface Attempt {
  step?: string;
  model?: string;
  status?: number | null;
  reason?: string;
  ms?: number;
}

export interface Fault {
  message: string;
  status: number;
  code: string;
  param: string;
  requestId: string;
  attempts: Attempt[];
}

/** What is known of how an answer came about; times in milliseconds since the request. */
export interface Facts {
  model?: string;
  provider?: string;
  step?: string;
  attempts?: number;
  /** The attempts that failed before. */
  failed?: Attempt[];
  requestId?: string;
  /** Names of fields that the provider has nothing for. */
  dropped?: string;
  /** What became of converted media. */
  adapted?: string;
  firstMs?: number;
  totalMs?: number;
  inputTokens?: number;
  outputTokens?: number;
  /** Of the input tokens: read from the provider's cache, and written to it. */
  cachedTokens?: number;
  cacheWriteTokens?: number;
  /** Of the output tokens: those of thoughts. */
  reasoningTokens?: number;
  /** In dollars, as the provider says it, else by the listed prices of the model. */
  cost?: number;
  finish?: string;
}

export interface UserTurn {
  role: "user";
  text: string;
  attachments: Attachment[];
  /** Ids of its items in the stored chat. */
  itemIds?: string[];
}

export interface AssistantTurn {
  role: "assistant";
  blocks: Block[];
  facts: Facts;
  /** `cut` was left in the middle, by a reload for example. */
  state: "streaming" | "done" | "stopped" | "cut" | "failed";
  fault?: Fault;
  /** Ids of its items in the stored chat. */
  itemIds?: string[];
  /** Of a response in the background: where it can be read again. */
  responseId?: string;
}

export type Turn = UserTurn | AssistantTurn;

/** Return the calls of an answer. */
export function callsOf(turn: Turn | undefined): ToolCall[] {
  if (turn?.role !== "assistant") return [];
  return turn.blocks.filter((block) => block.type === "call");
}

/** Return whether the answer at the end waits for results of its tools. */
export function isWaiting(turns: readonly Turn[]): boolean {
  const last = turns.at(-1);
  if (last?.role !== "assistant" || last.state !== "done") return false;
  return callsOf(last).some((call) => call.result === undefined);
}

/** Return the turns that go into a request: answers that failed before any content do not. */
export function sendable(turns: readonly Turn[]): Turn[] {
  return turns.filter((turn) => turn.role === "user" || turn.blocks.length > 0);
}

/** Return the arguments of a call as a value; what is no JSON object as an empty one. */
export function argumentsOf(call: ToolCall): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(call.arguments || "{}");
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : {};
  } catch {
    return {};
  }
}

/** Return whether providers take a file as an image. */
export function isImage(attachment: Attachment): boolean {
  return /^image\/(png|jpeg|gif|webp)$/.test(attachment.type);
}
