// OpenAI's Node SDK at the responses endpoint: answers, streams, tools, parsed output, state,
// background, conversations; and its embeddings.

import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import { address, check, embedding, key, ofResponses, run } from "../steps.mjs";

const client = new OpenAI({ baseURL: `${address}/beta/v1`, apiKey: key, maxRetries: 0 });
const { responses } = client;
const Place = z.object({ name: z.string(), population: z.number().int() });
const weather = {
  type: "function",
  name: "get_weather",
  description: "Tells the weather of a place",
  strict: true,
  parameters: {
    type: "object",
    properties: { place: { type: "string" } },
    required: ["place"],
    additionalProperties: false,
  },
};
const asked = { instructions: "Be brief.", input: "hello there" };

function results(response) {
  return response.output
    .filter((item) => item.type === "function_call")
    .map(({ call_id }) => ({ type: "function_call_output", call_id, output: "14 degrees, rain" }));
}

const steps = {
  answers: async (model) => {
    const answer = await responses.create({ model, ...asked });
    check(answer.output_text.includes("hello there"), answer);
    check(answer.status === "completed" && answer.usage.output_tokens > 0, answer);
  },
  streams: async (model) => {
    const whole = await responses.create({ model, ...asked });
    const stream = responses.stream({ model, ...asked });
    const numbers = [];
    const pieces = [];
    stream.on("event", (event) => numbers.push(event.sequence_number));
    stream.on("response.output_text.delta", ({ delta }) => pieces.push(delta));
    const answer = await stream.finalResponse();
    check(answer.output_text === whole.output_text, answer);
    check(pieces.length > 1 && pieces.join("") === whole.output_text, pieces);
    check(numbers.every((number, place) => number === place), numbers);
  },
  parses: async (model) => {
    const text = { format: zodTextFormat(Place, "place") };
    const asks = { model, input: "describe a place", text };
    const answer = await responses.parse(asks);
    check(Number.isInteger(answer.output_parsed.population), answer);
    const streamed = await responses.stream(asks).finalResponse();
    check(Number.isInteger(streamed.output_parsed.population), streamed);
  },
  tools: async (model) => {
    const input = [{ role: "user", content: "use get_weather in parallel for Bern" }];
    const called = await responses.create({ model, input, tools: [weather] });
    check(results(called).length === 2, called);
    const answer = await responses.create({
      model,
      input: [...input, ...called.output, ...results(called)],
      tools: [weather],
    });
    check(answer.output_text.includes("14 degrees, rain"), answer);
    const streamed = await responses.stream({ model, input, tools: [weather] }).finalResponse();
    check(results(streamed).length === 2, streamed);
  },
  conversations: async (model) => {
    const { conversations } = client;
    const metadata = { topic: "weather" };
    const talk = await conversations.create({ metadata });
    check(talk.object === "conversation" && talk.metadata.topic === "weather", talk);
    const input = "use get_weather for Bern";
    const asks = { model, tools: [weather], conversation: talk.id };
    const called = await responses.create({ ...asks, input });
    const answer = await responses.stream({ ...asks, input: results(called) }).finalResponse();
    check(answer.output_text.includes("14 degrees, rain"), answer);
    check(answer.conversation.id === talk.id, answer);
    await conversations.items.create(talk.id, {
      items: Array.from({ length: 20 }, (_, n) => ({ role: "user", content: `number ${n}` })),
    });
    const items = [];
    for await (const item of conversations.items.list(talk.id, { limit: 7 })) items.push(item);
    check(items[0].content[0].text === "number 19", items[0]);
    check(items.at(-1).content[0].text === input, items.at(-1));
    check(new Set(items.map(({ id }) => id)).size === items.length, items);
    const path = { conversation_id: talk.id };
    const found = await conversations.items.retrieve(items[0].id, path);
    check(found.content[0].text === "number 19", found);
    check((await conversations.items.delete(items[0].id, path)).id === talk.id, items[0]);
    const changed = await conversations.update(talk.id, { metadata: { topic: "tides" } });
    check((await conversations.retrieve(talk.id)).metadata.topic === "tides", changed);
    check((await conversations.delete(talk.id)).deleted, talk);
    const gone = await conversations.retrieve(talk.id).catch((error) => error);
    check(gone instanceof OpenAI.NotFoundError, gone);
  },
  state: async (model) => {
    const input = "use get_weather for Bern";
    const called = await responses.create({ model, input, tools: [weather] });
    const answer = await responses.create({
      model,
      previous_response_id: called.id,
      input: results(called),
      tools: [weather],
    });
    check(answer.output_text.includes("14 degrees, rain"), answer);
    const kept = await responses.retrieve(answer.id);
    check(kept.output_text === answer.output_text, kept);
    const items = [];
    for await (const item of responses.inputItems.list(answer.id)) items.push(item.type);
    check(items.includes("function_call_output"), items);
    await responses.delete(answer.id);
    const gone = await responses.retrieve(answer.id).catch((error) => error);
    check(gone.status === 404, gone);
  },
  background: async (model) => {
    let answer = await responses.create({ model, ...asked, background: true });
    const begun = Date.now();
    while (["queued", "in_progress"].includes(answer.status)) {
      check(Date.now() - begun < 30_000, answer);
      await new Promise((resolve) => setTimeout(resolve, 100));
      answer = await responses.retrieve(answer.id);
    }
    check(answer.status === "completed" && answer.output_text.includes("hello there"), answer);
  },
  failures: async (model) => {
    const failed = await responses.create({ model, input: "a", temperature: 9 }).catch((e) => e);
    check(failed.status === 400 && failed.param === "temperature", failed);
  },
};

const vectors = {
  embeddings: async (model) => {
    const input = ["a dog", "two cats"];
    const packed = await client.embeddings.create({ model, input });
    const numbers = await client.embeddings.create({ model, input, encoding_format: "float" });
    check(packed.data.length === 2 && packed.usage.total_tokens > 0, packed);
    const [one, other] = [packed, numbers].map((answer) => Array.from(answer.data[1].embedding));
    check(one.every((number, place) => Math.abs(number - other[place]) < 1e-6), [one, other]);
  },
};

await run(steps, ofResponses);
await run(vectors, embedding);
