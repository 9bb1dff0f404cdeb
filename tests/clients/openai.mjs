// The official Node SDK of OpenAI against a gateway, with baseURL and apiKey alone.

import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import { address, collect, key, model, run, unknownKey } from "./steps.mjs";

const open = (apiKey) => new OpenAI({ baseURL: `${address}/beta/v1`, apiKey, maxRetries: 0 });
const client = open(key);
const { completions } = client.chat;
const provider = model.split("/")[0];
const hello = [{ role: "user", content: "hello there" }];
const askWeather = { role: "user", content: "use get_weather for Bern" };
const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Tells the weather of a place",
    parameters: {
      type: "object",
      properties: { place: { type: "string" } },
      required: ["place"],
    },
  },
};
const Place = z.object({ name: z.string(), population: z.number().int() });

await run({
  create: () => completions.create({ model, messages: hello }),
  stream: async () =>
    collect(
      await completions.create({
        model,
        messages: hello,
        stream: true,
        stream_options: { include_usage: true },
      }),
    ),
  streamHelper: () => completions.stream({ model, messages: hello }).finalChatCompletion(),
  toolLoop: async () => {
    const called = await completions.create({ model, messages: [askWeather], tools: [weather] });
    const { message } = called.choices[0];
    const result = {
      role: "tool",
      tool_call_id: message.tool_calls[0].id,
      content: "14 degrees, rain",
    };
    const answer = await completions.create({
      model,
      messages: [askWeather, message, result],
      tools: [weather],
    });
    return { called, answer };
  },
  runTools: () =>
    completions
      .runTools({
        model,
        messages: [askWeather],
        stream: true,
        tools: [
          {
            type: "function",
            function: {
              ...weather.function,
              parse: JSON.parse,
              function: () => "14 degrees, rain",
            },
          },
        ],
      })
      .finalContent(),
  parse: async () => {
    const answer = await completions.parse({
      model,
      messages: [{ role: "user", content: "describe a place" }],
      response_format: zodResponseFormat(Place, "place"),
    });
    return answer.choices[0].message.parsed;
  },
  models: async () => (await collect(client.models.list())).map((each) => each.id),
  oneModel: () => client.models.retrieve("sandbox/echo"),
  unknownKey: () => open(unknownKey).chat.completions.create({ model, messages: hello }),
  unknownModel: () => completions.create({ model: "no-such-model", messages: hello }),
  wrongValue: () => completions.create({ model, messages: hello, temperature: 3 }),
  rateLimit: () =>
    completions.create({ model: `${provider}/fail-429`, messages: hello, fallback: "disabled" }),
  failure: () =>
    completions.create({ model: `${provider}/fail-500`, messages: hello, fallback: "disabled" }),
  brokenStream: async () =>
    collect(
      await completions.create({
        model: `${provider}/cut`,
        messages: hello,
        stream: true,
        fallback: "disabled",
      }),
    ),
});
