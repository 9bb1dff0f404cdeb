// Chat completions.
import {
  type AssistantTurn,
  type Block,
  type ToolCall,
  type Turn,
  type UserTurn,
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

export const chat: Dialect = {
  path: "/v1/chat/completions",
  known: [
    "model",
    "messages",
    "temperature",
    "top_p",
    "max_tokens",
    "stop",
    "reasoning_effort",
    "response_format",
    "tools",
  ],
  body,
  streamed: { stream: true, stream_options: { include_usage: true } },
  read,
};

function body(settings: Settings, turns: readonly Turn[]): Record<string, unknown> {
  const messages: unknown[] = [];
  if (settings.system) messages.push({ role: "system", content: settings.system });
  for (const turn of sendable(turns)) {
    messages.push(...(turn.role === "user" ? [userMessage(turn)] : answerMessages(turn)));
  }
  const fields: Record<string, unknown> = { model: settings.model, messages };
  const temperature = numberOf(settings, "temperature");
  if (temperature !== undefined) fields["temperature"] = temperature;
  const topP = numberOf(settings, "topP");
  if (topP !== undefined) fields["top_p"] = topP;
  const maxTokens = numberOf(settings, "maxTokens");
  if (maxTokens !== undefined) fields["max_tokens"] = maxTokens;
  const stop = linesOf(settings.stop);
  if (stop.length > 0) fields["stop"] = stop;
  if (settings.effort) fields["reasoning_effort"] = settings.effort;
  if (settings.isJson) fields["response_format"] = { type: "json_object" };
  const tools = toolsOf(settings.tools);
  if (tools.length > 0) {
    fields["tools"] = tools.map((tool) => ({ type: "function", function: tool }));
  }
  return { ...fields, ...extensionsOf(settings) };
}

function userMessage({ text, attachments }: UserTurn): unknown {
  if (attachments.length === 0) return { role: "user", content: text };
  const parts: unknown[] = attachments.map((attachment) =>
    isImage(attachment)
      ? { type: "image_url", image_url: { url: attachment.fileId } }
      : { type: "file", file: { file_id: attachment.fileId } },
  );
  if (text) parts.push({ type: "text", text });
  return { role: "user", content: parts };
}

function answerMessages({ blocks }: AssistantTurn): unknown[] {
  const text = joined(blocks, "text");
  const thoughts = joined(blocks, "thinking");
  const calls = blocks.filter((block) => block.type === "call");
  const message: Record<string, unknown> = { role: "assistant", content: text || null };
  if (thoughts) message["reasoning_content"] = thoughts;
  if (calls.length > 0) {
    message["tool_calls"] = calls.map((call) => ({
      ...call.extra,
      id: call.id,
      type: "function",
      function: { name: call.name, arguments: call.arguments || "{}" },
    }));
  }
  // A message without text or calls says nothing, and is refused.
  if (!text && calls.length === 0) return [];
  const results = calls.map((call) => ({
    role: "tool",
    tool_call_id: call.id,
    content: call.result ?? "",
  }));
  return [message, ...results];
}

function joined(blocks: readonly Block[], type: "text" | "thinking"): string {
  return blocks.map((block) => (block.type === type ? block.text : "")).join("");
}

function detail(details: unknown, name: string): number {
  return isObject(details) ? Number(details[name] ?? 0) : 0;
}

function read(turn: AssistantTurn, event: Record<string, unknown>): void {
  const usage = event["usage"];
  if (isObject(usage)) {
    turn.facts.inputTokens = Number(usage["prompt_tokens"] ?? 0);
    turn.facts.outputTokens = Number(usage["completion_tokens"] ?? 0);
    turn.facts.cachedTokens = detail(usage["prompt_tokens_details"], "cached_tokens");
    turn.facts.reasoningTokens = detail(usage["completion_tokens_details"], "reasoning_tokens");
    if (typeof usage["cost"] === "number") turn.facts.cost = usage["cost"];
  }
  const choices = event["choices"];
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  if (!isObject(choice)) return;
  if (typeof choice["finish_reason"] === "string") turn.facts.finish = choice["finish_reason"];
  const delta = choice["delta"];
  if (!isObject(delta)) return;
  append(turn, "thinking", delta["reasoning_content"]);
  append(turn, "text", delta["content"]);
  append(turn, "text", delta["refusal"]);
  // As OpenRouter and Gemini's compatible API have them.
  const images = delta["images"];
  if (Array.isArray(images)) images.filter(isObject).forEach((image) => readImage(turn, image));
  const calls = delta["tool_calls"];
  if (Array.isArray(calls)) calls.filter(isObject).forEach((call) => readCall(turn, call));
}

function append(turn: AssistantTurn, type: "text" | "thinking", text: unknown): void {
  if (typeof text !== "string" || text === "") return;
  const last = turn.blocks.at(-1);
  if (last?.type === type) last.text += text;
  else turn.blocks.push({ type, text });
}

function readImage(turn: AssistantTurn, { image_url: image }: Record<string, unknown>): void {
  const address = isObject(image) ? image["url"] : undefined;
  if (typeof address === "string") turn.blocks.push({ type: "image", address });
}

function readCall(turn: AssistantTurn, delta: Record<string, unknown>): void {
  const { index, id, type, function: called, ...extra } = delta;
  const { name, arguments: more } = isObject(called) ? called : {};
  const calls = turn.blocks.filter((block): block is ToolCall => block.type === "call");
  let call = calls[Number(index)];
  if (call === undefined) {
    call = { type: "call", id: String(id ?? ""), name: String(name ?? ""), arguments: "" };
    turn.blocks.push(call);
  }
  if (typeof more === "string") call.arguments += more;
  if (Object.keys(extra).length > 0) call.extra = { ...call.extra, ...extra };
}
