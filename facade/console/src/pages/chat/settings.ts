// What a request asks for beside its conversation, and its translation to fields of a body.
import { chatWords } from "../../words/chat";

const texts = chatWords.settings;

export type DialectName = "chat" | "messages" | "responses";

export interface Settings {
  dialect: DialectName;
  model: string;
  /** Further models that are asked the same, to compare their answers. */
  others: readonly string[];
  system: string;
  // Numbers as they were typed; "" leaves the field out.
  temperature: string;
  topP: string;
  maxTokens: string;
  /** One stop string a line. */
  stop: string;
  /** Of chats and responses: how much a model thinks. */
  effort: string;
  /** Of messages: tokens that it may think. */
  thinkingBudget: string;
  /** Of chats and responses: whether the answer is JSON. */
  isJson: boolean;
  fallback: string;
  /** Models of the chain, one a line. */
  steps: string;
  memoryId: string;
  /** Of messages: whether the gateway's own tools are offered. */
  hasBuiltInTools: boolean;
  /** JSON: an array of tools. */
  tools: string;
  /** JSON: an object of further fields. */
  further: string;
  /** Whether the conversation is stored as a chat. */
  isStored: boolean;
}

export const DEFAULTS: Settings = {
  dialect: "chat",
  model: "",
  others: [],
  system: "",
  temperature: "",
  topP: "",
  maxTokens: "",
  stop: "",
  effort: "",
  thinkingBudget: "",
  isJson: false,
  fallback: "",
  steps: "",
  memoryId: "",
  hasBuiltInTools: false,
  tools: "",
  further: "",
  isStored: true,
};

export interface Tool {
  name: string;
  description?: string;
  /** JSON schema of the arguments. */
  parameters: unknown;
}

/** A setting that cannot be sent; the text names it. */
export class SettingError extends Error {}

type NumberName = "temperature" | "topP" | "maxTokens" | "thinkingBudget";

/** Return a number that was typed, or undefined for none. */
export function numberOf(settings: Settings, name: NumberName): number | undefined {
  if (settings[name].trim() === "") return undefined;
  const value = Number(settings[name]);
  if (!Number.isFinite(value)) throw new SettingError(texts.notNumber(texts[name]));
  return value;
}

/** Return the lines of a text that are not empty. */
export function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => line.trim() !== "");
}

/** Return the tools that were written in any of the usual forms. */
export function toolsOf(text: string): Tool[] {
  if (text.trim() === "") return [];
  const given = parsed(text, texts.tools);
  if (!Array.isArray(given)) throw new SettingError(texts.notArray(texts.tools));
  return given.map((item: unknown, index) => {
    const outer = isObject(item) ? item : {};
    const tool = isObject(outer["function"]) ? outer["function"] : outer;
    const { name, description, parameters, input_schema } = tool;
    if (typeof name !== "string" || name === "") {
      throw new SettingError(texts.noName(texts.tools, index + 1));
    }
    return {
      name,
      ...(typeof description === "string" ? { description } : {}),
      parameters: parameters ?? input_schema ?? { type: "object", properties: {} },
    };
  });
}

/** Return the fields for fallback, memory and whatever else was written, as both dialects have them. */
export function extensionsOf(settings: Settings): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  if (settings.fallback) fields["fallback"] = settings.fallback;
  if (settings.fallback === "enabled" || settings.fallback === "strict") {
    const steps = linesOf(settings.steps).map((model, index) => ({
      step_id: `step-${index + 1}`,
      model: model.trim(),
    }));
    fields["fallback_config"] = { strategy: { mode: "sequential" }, steps };
  }
  if (settings.memoryId) fields["memory_id"] = settings.memoryId;
  if (settings.further.trim() !== "") {
    const further = parsed(settings.further, texts.further);
    if (!isObject(further)) throw new SettingError(texts.notObject(texts.further));
    Object.assign(fields, further);
  }
  return fields;
}

function parsed(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new SettingError(`${name}: ${(error as Error).message}`);
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
