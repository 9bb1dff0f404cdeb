// OpenAI's Responses API. Its answers are generated in the background, so that they go on when the
// page is left, and are read again when it is back.
import { type AssistantTurn, type Block, type Turn, sendable } from "./conversation";
import type { Dialect } from "./dialect";
import { toBlocks, toItems } from "./items";
import {
  type Settings,
  extensionsOf,
  isObject,
  numberOf,
  toolsOf,
} from "./settings";

export const responses: Dialect = {
  path: "/v1/responses",
  known: [
    "model",
    "input",
    "instructions",
    "temperature",
    "top_p",
    "max_output_tokens",
    "reasoning",
    "text",
    "tools",
  ],
  body,
  streamed: { stream: true, background: true, store: true },
  read,
};

function body(settings: Settings, turns: readonly Turn[]): Record<string, unknown> {
  const fields: Record<string, unknown> = {
    model: settings.model,
    input: sendable(turns).flatMap(toItems),
  };
  if (settings.system) fields["instructions"] = settings.system;
  const temperature = numberOf(settings, "temperature");
  if (temperature !== undefined) fields["temperature"] = temperature;
  const topP = numberOf(settings, "topP");
  if (topP !== undefined) fields["top_p"] = topP;
  const maxTokens = numberOf(settings, "maxTokens");
  if (maxTokens !== undefined) fields["max_output_tokens"] = maxTokens;
  if (settings.effort) fields["reasoning"] = { effort: settings.effort };
  if (settings.isJson) fields["text"] = { format: { type: "json_object" } };
  const tools = toolsOf(settings.tools);
  if (tools.length > 0) fields["tools"] = tools.map((tool) => ({ type: "function", ...tool }));
  return { ...fields, ...extensionsOf(settings) };
}

function read(turn: AssistantTurn, event: Record<string, unknown>): void {
  const { response, item, delta } = event;
  switch (event["type"]) {
    case "response.created":
      // From here on it can be read again. What an earlier read had comes once more.
      if (isObject(response)) turn.responseId = String(response["id"]);
      turn.blocks = [];
      break;
    case "response.output_item.added":
      if (isObject(item)) turn.blocks.push(...toBlocks(item));
      break;
    case "response.output_text.delta":
    case "response.refusal.delta":
    case "response.reasoning_text.delta":
    case "response.reasoning_summary_text.delta":
      extend(turn.blocks.at(-1), String(delta));
      break;
    case "response.function_call_arguments.delta": {
      const call = turn.blocks.at(-1);
      if (call?.type === "call") call.arguments += String(delta);
      break;
    }
    case "response.output_item.done":
      if (isObject(item)) turn.blocks.splice(-1, 1, ...toBlocks(item));
      break;
    case "response.completed":
    case "response.incomplete":
      if (isObject(response)) readResponse(turn, response);
      break;
  }
}

function extend(block: Block | undefined, text: string): void {
  if (block?.type === "text" || block?.type === "thinking") block.text += text;
}

function readResponse(turn: AssistantTurn, response: Record<string, unknown>): void {
  const { facts } = turn;
  const usage = response["usage"];
  if (isObject(usage)) {
    facts.inputTokens = Number(usage["input_tokens"] ?? 0);
    facts.outputTokens = Number(usage["output_tokens"] ?? 0);
    facts.cachedTokens = detail(usage["input_tokens_details"], "cached_tokens");
    facts.reasoningTokens = detail(usage["output_tokens_details"], "reasoning_tokens");
    if (typeof usage["cost"] === "number") facts.cost = usage["cost"];
  }
  const adaptation = response["gateway"];
  if (!isObject(adaptation)) return;
  if (Array.isArray(adaptation["dropped"])) facts.dropped = adaptation["dropped"].join(", ");
  if (Array.isArray(adaptation["adapted"])) facts.adapted = adaptation["adapted"].join(", ");
}

function detail(details: unknown, name: string): number {
  return isObject(details) ? Number(details[name] ?? 0) : 0;
}
