// Responses over WebSockets with OpenAI's official Node SDK, with baseURL and apiKey alone.

import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import { address, key, model, run, unknownKey } from "./steps.mjs";

const open = (apiKey) =>
  new ResponsesWS(new OpenAI({ baseURL: `${address}/v1`, apiKey, maxRetries: 0 }));
const weather = {
  type: "function",
  name: "get_weather",
  parameters: { type: "object", properties: { place: { type: "string" } }, required: ["place"] },
  strict: false,
};
const ENDS = ["response.completed", "response.incomplete", "response.failed"];

// Requests a response; returns the events up to its end, and throws what the SDK reports.
async function ask(socket, fields) {
  const messages = socket.stream();
  socket.send({ type: "response.create", model, store: false, ...fields });
  const events = [];
  for await (const { type, message, error, code } of messages) {
    if (type === "error") throw Object.assign(error, error.error?.error);
    if (type === "close") throw new Error(`closed with ${code}`);
    if (type !== "message") continue;
    events.push(message);
    if (ENDS.includes(message.type)) return events;
  }
  throw new Error("the messages have ended");
}

const text = (response) =>
  response.output.flatMap((item) => item.content ?? []).map((part) => part.text).join("");

// Closes a socket; returns the code that the server has closed it with.
const closed = (socket) =>
  new Promise((resolve) => {
    socket.on("close", resolve);
    socket.close({ code: 1000, reason: "done" });
  });

await run({
  conversation: async () => {
    const socket = open(key);
    const first = await ask(socket, { input: "My dog is called Rex." });
    const deltas = first.filter(({ type }) => type === "response.output_text.delta");
    const { response } = first.at(-1);
    const next = await ask(socket, {
      input: "sandbox: recite",
      previous_response_id: response.id,
    });
    return {
      first: first[0].type,
      streamed: deltas.map(({ delta }) => delta).join("") === text(response),
      whole: text(response),
      remembered: text(next.at(-1).response),
      tokens: response.usage.total_tokens,
      code: await closed(socket),
    };
  },
  tools: async () => {
    const socket = open(key);
    const called = await ask(socket, { input: "use get_weather for Bern", tools: [weather] });
    const { response } = called.at(-1);
    const call = response.output.find(({ type }) => type === "function_call");
    const output = { type: "function_call_output", call_id: call.call_id, output: "14 degrees" };
    const answer = await ask(socket, {
      input: [output],
      tools: [weather],
      previous_response_id: response.id,
    });
    await closed(socket);
    return {
      name: call.name,
      arguments: JSON.parse(call.arguments),
      answer: text(answer.at(-1).response),
    };
  },
  errors: async () => {
    const socket = open(key);
    const codes = [];
    for (const fields of [{ model: "no-such-model" }, { temperature: 3 }]) {
      await ask(socket, { input: "Hello", ...fields }).catch(({ code, param }) =>
        codes.push([code, param]),
      );
    }
    const after = await ask(socket, { input: "Hello" });
    await closed(socket);
    return { codes, after: after.at(-1).type };
  },
  unknownKey: () => ask(open(unknownKey), { input: "Hello" }),
  leaving: async () => {
    const socket = open(key);
    const messages = socket.stream();
    socket.send({ type: "response.create", model, store: false, input: "word ".repeat(5_000) });
    for await (const { message } of messages) {
      if (message?.type === "response.output_text.delta") break;
    }
    const code = await closed(socket);
    const other = open(key);
    const after = await ask(other, { input: "Hello" });
    await closed(other);
    return { code, after: after.at(-1).type };
  },
});
