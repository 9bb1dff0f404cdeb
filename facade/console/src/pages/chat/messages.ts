// Anthropic's messages.
import {
  type AssistantTurn,
  type Block,
  type Turn,
  type UserTurn,
  argumentsOf,
  isImage,
  sendable,
} from "./conversation";
import type { Dialect } from "./dialect";
import {
  type Settings,
  extensionsOf,
  isObject,
  linesOf,
  numberOf,
  toolsOf,
} from "./settings";

// Sent where no number of tokens was chosen: the field is required.
const MAX_TOKENS = 4096;

export const messages: Dialect = {
  path: "/v1/messages",
  // Its SDKs of today have no temperature and no top_p.
  known: [
    "model",
    "max_tokens",
    "messages",
    "system",
    "stop_sequences",
    "thinking",
    "tools",
  ],
  body,
  streamed: { stream: true },
  read,
};

function body(settings: Settings, turns: readonly Turn[]): Record<string, unknown> {
  const budget = numberOf(settings, "thinkingBudget");
  const fields: Record<string, unknown> = {
    model: settings.model,
    max_tokens: numberOf(settings, "maxTokens") ?? MAX_TOKENS + (budget ?? 0),
    messages: sendable(turns).flatMap((turn) =>
      turn.role === "user" ? [userMessage(turn)] : answerMessages(turn),
    ),
  };
  if (settings.system) fields["system"] = settings.system;
  const temperature = numberOf(settings, "temperature");
  if (temperature !== undefined) fields["temperature"] = temperature;
  const topP = numberOf(settings, "topP");
  if (topP !== undefined) fields["top_p"] = topP;
  const stop = linesOf(settings.stop);
  if (stop.length > 0) fields["stop_sequences"] = stop;
  if (budget !== undefined) fields["thinking"] = { type: "enabled", budget_tokens: budget };
  const tools = toolsOf(settings.tools);
  if (tools.length > 0) {
    fields["tools"] = tools.map(({ parameters, ...tool }) => ({
      ...tool,
      input_schema: parameters,
    }));
  }
  if (settings.hasBuiltInTools) fields["use_built_in_tools"] = true;
  return { ...fields, ...extensionsOf(settings) };
}

function userMessage({ text, attachments }: UserTurn): unknown {
  if (attachments.length === 0) return { role: "user", content: text };
  const parts: unknown[] = attachments.map((attachment) => ({
    type: isImage(attachment) ? "image" : "document",
    source: { type: "file", file_id: attachment.fileId },
  }));
  if (text) parts.push({ type: "text", text });
  return { role: "user", content: parts };
}

function answerMessages({ blocks }: AssistantTurn): unknown[] {
  const content = blocks.flatMap(toPart);
  if (content.length === 0) return [];
  const results = blocks
    .filter((block) => block.type === "call")
    .map((call) => ({ type: "tool_result", tool_use_id: call.id, content: call.result ?? "" }));
  const answer = { role: "assistant", content };
  return results.length > 0 ? [answer, { role: "user", content: results }] : [answer];
}

function toPart(block: Block): unknown[] {
  switch (block.type) {
    case "text":
      return block.text ? [{ type: "text", text: block.text }] : [];
    case "thinking":
      // Thoughts without a signature are no model's.
      return block.signature
        ? [{ type: "thinking", thinking: block.text, signature: block.signature }]
        : [];
    case "call":
      return [{ type: "tool_use", id: block.id, name: block.name, input: argumentsOf(block) }];
    case "image":
      return [];
    case "other":
      return [block.json];
  }
}

function read(turn: AssistantTurn, event: Record<string, unknown>): void {
  switch (event["type"]) {
    case "message_start":
      if (isObject(event["message"])) readUsage(turn, event["message"]["usage"]);
      break;
    case "content_block_start":
      if (isObject(event["content_block"])) turn.blocks.push(toBlock(event["content_block"]));
      break;
    case "content_block_delta":
      if (isObject(event["delta"])) extend(turn.blocks.at(-1), event["delta"]);
      break;
    case "message_delta":
      readUsage(turn, event["usage"]);
      if (isObject(event["delta"])) {
        const reason = event["delta"]["stop_reason"];
        if (typeof reason === "string") turn.facts.finish = reason;
      }
      break;
  }
}

function toBlock(part: Record<string, unknown>): Block {
  switch (part["type"]) {
    case "text":
      return { type: "text", text: String(part["text"] ?? "") };
    case "thinking":
      return { type: "thinking", text: String(part["thinking"] ?? "") };
    case "tool_use":
      return { type: "call", id: String(part["id"]), name: String(part["name"]), arguments: "" };
    default:
      return { type: "other", json: part };
  }
}

function extend(block: Block | undefined, delta: Record<string, unknown>): void {
  switch (delta["type"]) {
    case "text_delta":
      if (block?.type === "text") block.text += String(delta["text"]);
      break;
    case "thinking_delta":
      if (block?.type === "thinking") block.text += String(delta["thinking"]);
      break;
    case "signature_delta":
      if (block?.type === "thinking") {
        block.signature = (block.signature ?? "") + String(delta["signature"]);
      }
      break;
    case "input_json_delta":
      if (block?.type === "call") block.arguments += String(delta["partial_json"]);
      else if (block?.type === "other") addInput(block.json, String(delta["partial_json"]));
      break;
  }
}

// Arguments of a built-in tool come in pieces, too, and are an object once they are complete.
function addInput(json: Record<string, unknown>, more: string): void {
  if (more === "") return;
  const text = (typeof json["input"] === "string" ? json["input"] : "") + more;
  try {
    json["input"] = JSON.parse(text);
  } catch {
    json["input"] = text;
  }
}

function readUsage(turn: AssistantTurn, usage: unknown): void {
  if (!isObject(usage)) return;
  const count = (name: string): number => Number(usage[name] ?? 0);
  if (usage["input_tokens"] !== undefined) {
    turn.facts.inputTokens =
      count("input_tokens") +
      count("cache_creation_input_tokens") +
      count("cache_read_input_tokens");
    turn.facts.cachedTokens = count("cache_read_input_tokens");
    turn.facts.cacheWriteTokens = count("cache_creation_input_tokens");
  }
  if (usage["output_tokens"] !== undefined) turn.facts.outputTokens = count("output_tokens");
  if (typeof usage["cost"] === "number") turn.facts.cost = usage["cost"];
}
