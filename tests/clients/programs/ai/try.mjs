// The AI SDK with three providers: answers, streams, a loop with tools, objects, thinking, vectors.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embedMany, generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import {
  address,
  check,
  embedding,
  hasJsonMode,
  key,
  ofResponses,
  run,
  showsThoughts,
} from "../steps.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;

const chat = createOpenAICompatible({
  name: "gateway",
  baseURL: `${address}/beta/v1`,
  apiKey: key,
  includeUsage: true,
  supportsStructuredOutputs: true,
});
const jsonMode = createOpenAICompatible({
  name: "gateway",
  baseURL: `${address}/beta/v1`,
  apiKey: key,
});
// Its models are those of responses by themselves.
const openai = createOpenAI({ baseURL: `${address}/beta/v1`, apiKey: key });
const messages = createAnthropic({ baseURL: `${address}/beta/v1`, apiKey: key });

const Place = z.object({ name: z.string(), population: z.number().int() });
const tools = {
  get_weather: tool({
    description: "Tells the weather of a place",
    inputSchema: z.object({ place: z.string() }),
    execute: async () => "14 degrees, rain",
  }),
};

async function answers(model) {
  const asked = { model, system: "Be brief.", prompt: "hello there", maxRetries: 0 };
  const whole = await generateText(asked);
  check(whole.text.includes("hello there") && whole.usage.outputTokens > 0, whole);
  const stream = streamText(asked);
  const pieces = [];
  for await (const piece of stream.textStream) pieces.push(piece);
  check(pieces.length > 1 && pieces.join("") === whole.text, pieces);
  check((await stream.usage).outputTokens > 0, await stream.usage);
}

async function loops(model, options = {}) {
  const asked = {
    model,
    tools,
    prompt: "use get_weather in parallel for Bern",
    stopWhen: stepCountIs(3),
    maxRetries: 0,
    ...options,
  };
  const whole = await generateText(asked);
  check(whole.steps[0].toolCalls.length === 2, whole.steps[0].content);
  check(whole.steps.length === 2 && whole.text.includes("14 degrees, rain"), whole.text);
  const failures = [];
  const stream = streamText({ ...asked, onError: ({ error }) => failures.push(String(error)) });
  const parts = [];
  for await (const part of stream.fullStream) parts.push(part.type);
  check(!failures.length && (await stream.text).includes("14 degrees, rain"), failures);
  return parts;
}

async function object(model) {
  const asked = { model, prompt: "describe a place", output: Output.object({ schema: Place }) };
  const whole = await generateText({ ...asked, maxRetries: 0 });
  check(Number.isInteger(whole.output.population), whole.output);
  const stream = streamText({ ...asked, maxRetries: 0 });
  for await (const part of stream.partialOutputStream) check(typeof part === "object", part);
  check(Number.isInteger((await stream.output).population), await stream.output);
}

const steps = {
  chatAnswers: (model) => answers(chat(model)),
  chatTools: (model) => loops(chat(model)),
  chatObject: (model) => object(chat(model)),
  chatJson: async (model) => {
    if (!hasJsonMode(model)) return;
    const Said = z.object({ said: z.string() });
    const asked = { model: jsonMode(model), prompt: "hello as JSON", maxRetries: 0 };
    const whole = await generateText({ ...asked, output: Output.object({ schema: Said }) });
    check(whole.output.said.includes("hello"), whole.output);
  },
  messagesAnswers: (model) => answers(messages(model)),
  messagesTools: (model) => loops(messages(model)),
  messagesObject: (model) => object(messages(model)),
  messagesThinking: async (model) => {
    const thinking = { type: "enabled", budgetTokens: 2_000 };
    const parts = await loops(messages(model), {
      maxOutputTokens: 4_000,
      providerOptions: { anthropic: { thinking } },
    });
    check(parts.includes("reasoning-delta") === showsThoughts(model), parts);
  },
};

const overResponses = {
  responsesAnswers: (model) => answers(openai(model)),
  responsesTools: (model) => loops(openai(model)),
  responsesObject: (model) => object(openai(model)),
  responsesThinking: async (model) => {
    const parts = await loops(openai(model), {
      // The SDK knows by a model's name whether it thinks.
      providerOptions: {
        openai: { forceReasoning: true, reasoningEffort: "low", reasoningSummary: "auto" },
      },
    });
    check(parts.includes("reasoning-delta") === showsThoughts(model), parts);
  },
};

const vectors = {
  embeddings: async (name) => {
    const values = ["a dog", "two cats"];
    const providers = [openai.embeddingModel(name), chat.embeddingModel(name)];
    for (const model of providers) {
      const made = await embedMany({ model, values, maxRetries: 0 });
      check(made.embeddings.every((one) => one.length === 256) && made.usage.tokens > 0, made);
    }
  },
};

await run(steps);
await run(overResponses, ofResponses);
await run(vectors, embedding);
