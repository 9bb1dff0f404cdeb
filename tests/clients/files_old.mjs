// The files calls of an older generation of both official Node SDKs.

import Anthropic, { toFile as anthropicFile } from "anthropic-old";
import OpenAI, { toFile as openaiFile } from "openai-old";
import { address, collect, key, run } from "./steps.mjs";

const openai = new OpenAI({ baseURL: `${address}/beta/v1`, apiKey: key, maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: `${address}/beta`, apiKey: key, maxRetries: 0 });
const text = async (response) => await (await response).text();

await run({
  openai: async () => {
    const file = await openaiFile(Buffer.from("hello"), "grüße.txt", { type: "text/plain" });
    const created = await openai.files.create({ file, purpose: "batch" });
    const retrieved = await openai.files.retrieve(created.id);
    const listed = (await collect(openai.files.list())).map((one) => one.id);
    const content = await text(openai.files.content(created.id));
    const deleted = await openai.files.delete(created.id);
    return { created, retrieved, listed, content, deleted };
  },
  anthropic: async () => {
    const file = await anthropicFile(Buffer.from("hello"), "a b.txt", { type: "text/plain" });
    const created = await anthropic.beta.files.upload({ file });
    const retrieved = await anthropic.beta.files.retrieveMetadata(created.id);
    const listed = (await collect(anthropic.beta.files.list())).map((one) => one.id);
    const content = await text(anthropic.beta.files.download(created.id));
    const deleted = await anthropic.beta.files.delete(created.id);
    return { created, retrieved, listed, content, deleted };
  },
});
