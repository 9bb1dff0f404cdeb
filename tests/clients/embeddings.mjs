// Embeddings of OpenAI's Node SDK and of an older generation of it.

import OpenAI from "openai";
import OldOpenAI from "openai-old";
import { address, key, model, run } from "./steps.mjs";

const input = ["a dog", "two cats"];
const clients = {
  new: new OpenAI({ baseURL: `${address}/beta/v1`, apiKey: key, maxRetries: 0 }),
  old: new OldOpenAI({ baseURL: `${address}/v1`, apiKey: key, maxRetries: 0 }),
};

const steps = Object.entries(clients).flatMap(([name, { embeddings }]) => [
  // In base64, which the SDK asks for and reads by itself.
  [`${name}Packed`, () => embeddings.create({ model, input })],
  [
    `${name}Numbers`,
    () => embeddings.create({ model, input, encoding_format: "float", dimensions: 8 }),
  ],
  [`${name}Refused`, () => embeddings.create({ model, input: ["a", ""] })],
]);
await run(Object.fromEntries(steps));
