// The official Node SDK of Anthropic against a gateway, with baseURL and apiKey alone.

import Anthropic from "@anthropic-ai/sdk";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { z } from "zod";
import { address, collect, key, model, run, unknownKey } from "./steps.mjs";

const open = (apiKey) => new Anthropic({ baseURL: `${address}/beta`, apiKey, maxRetries: 0 });
const client = open(key);
const { messages } = client;
const provider = model.split("/")[0];
const hello = [{ role: "user", content: "hello there" }];
const asked = { model, messages: hello, max_tokens: 200 };
const askWeather = { role: "user", content: "use get_weather for Bern" };
const weather = {
  name: "get_weather",
  description: "Tells the weather of a place",
  input_schema: {
    type: "object",
    properties: { place: { type: "string" } },
    required: ["place"],
  },
};
const Place = z.object({ name: z.string(), population: z.number().int() });
const failing = (name) => ({ ...asked, model: `${provider}/${name}`, fallback: "disabled" });

await run({
  create: () => messages.create(asked),
  stream: async () => collect(await messages.create({ ...asked, stream: true })),
  streamHelper: () => messages.stream(asked).finalMessage(),
  toolLoop: async () => {
    const question = { ...asked, tools: [weather] };
    const called = await messages.create({ ...question, messages: [askWeather] });
    const call = called.content.find((block) => block.type === "tool_use");
    const answer = await messages
      .stream({
        ...question,
        messages: [
          askWeather,
          { role: "assistant", content: called.content },
          {
            role: "user",
            content: [{ type: "tool_result", tool_use_id: call.id, content: "14 degrees, rain" }],
          },
        ],
      })
      .finalMessage();
    return { called, answer };
  },
  streamedTools: () =>
    messages.stream({ ...asked, messages: [askWeather], tools: [weather] }).finalMessage(),
  parse: async () => {
    const answer = await messages.parse({
      ...asked,
      messages: [{ role: "user", content: "describe a place" }],
      output_config: { format: zodOutputFormat(Place) },
    });
    return answer.parsed_output;
  },
  countTokens: () => messages.countTokens({ model, messages: hello }),
  models: async () => (await collect(client.models.list())).map((each) => each.id),
  oneModel: () => client.models.retrieve("sandbox/echo"),
  coding: () =>
    new Anthropic({ baseURL: `${address}/coding`, apiKey: key, maxRetries: 0 }).messages.create(
      asked,
    ),
  unknownKey: () => open(unknownKey).messages.create(asked),
  unknownModel: () => messages.create({ ...asked, model: "no-such-model" }),
  wrongValue: () => messages.create({ ...asked, temperature: 2 }),
  rateLimit: () => messages.create(failing("fail-429")),
  failure: () => messages.create(failing("fail-500")),
  brokenStream: async () => collect(await messages.create({ ...failing("cut"), stream: true })),
});
