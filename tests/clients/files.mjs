// The files calls of both official Node SDKs against a gateway, with baseURL and apiKey alone.

import Anthropic, { toFile as anthropicFile } from "@anthropic-ai/sdk";
import OpenAI, { toFile as openaiFile } from "openai";
import { address, collect, key, run, unknownKey } from "./steps.mjs";

const openOpenAI = (apiKey) => new OpenAI({ baseURL: `${address}/beta/v1`, apiKey, maxRetries: 0 });
const openai = openOpenAI(key);
const anthropic = new Anthropic({ baseURL: `${address}/beta`, apiKey: key, maxRetries: 0 });
const large = Buffer.alloc((50 << 20) + 1);
const text = async (response) => await (await response).text();
const clear = async () => {
  for (const file of await collect(openai.files.list())) await openai.files.delete(file.id);
};

await run({
  openai: async () => {
    await clear();
    const file = await openaiFile(Buffer.from("hello"), 'grüße "a".txt', { type: "text/plain" });
    const created = await openai.files.create({
      file,
      purpose: "batch",
      expires_after: { anchor: "created_at", seconds: 3600 },
    });
    const retrieved = await openai.files.retrieve(created.id);
    const content = await text(openai.files.content(created.id));
    const deleted = await openai.files.delete(created.id);
    return { created, retrieved, content, deleted };
  },
  openaiUploads: async () => {
    const fields = { filename: "a.txt", mime_type: "text/plain", purpose: "user_data" };
    const begun = await openai.uploads.create({ ...fields, bytes: 6 });
    const parts = [];
    for (const content of ["def", "abc"]) {
      const data = await openaiFile(Buffer.from(content), "part");
      parts.push((await openai.uploads.parts.create(begun.id, { data })).id);
    }
    const completed = await openai.uploads.complete(begun.id, { part_ids: parts.reverse() });
    const content = await text(openai.files.content(completed.file.id));
    const other = await openai.uploads.create({ ...fields, bytes: 1 });
    const cancelled = await openai.uploads.cancel(other.id);
    return { begun, completed, content, cancelled };
  },
  openaiPages: async () => {
    await clear();
    const made = [];
    for (const content of ["1", "22", "333", "4444", "55555"]) {
      const file = await openaiFile(Buffer.from(content), "a");
      made.push((await openai.files.create({ file, purpose: "batch" })).id);
    }
    const first = await openai.files.list({ limit: 2, order: "asc" });
    const listed = (await collect(first)).map((file) => file.id);
    return { made, listed, first: first.data.length };
  },
  anthropic: async () => {
    await clear();
    const file = await anthropicFile(Buffer.from("hello"), "a b.txt", { type: "text/plain" });
    const uploaded = await anthropic.beta.files.upload({ file, expires_in_seconds: 3600 });
    const retrieved = await anthropic.beta.files.retrieveMetadata(uploaded.id);
    const content = await text(anthropic.beta.files.download(uploaded.id));
    const deleted = await anthropic.beta.files.delete(uploaded.id);
    return { uploaded, retrieved, content, deleted };
  },
  anthropicPages: async () => {
    await clear();
    const made = [];
    for (const content of ["1", "22", "333", "4444", "55555"]) {
      const file = await anthropicFile(Buffer.from(content), "a");
      made.push((await anthropic.files.upload({ file })).id);
    }
    const first = await anthropic.files.list({ limit: 2 });
    const listed = (await collect(first)).map((file) => file.id);
    return { made, listed, first: first.data.length };
  },
  unknownFile: () => openai.files.retrieve(`file-${"0".repeat(26)}`),
  wrongPurpose: async () =>
    openai.files.create({ file: await openaiFile(Buffer.from("1"), "a"), purpose: "other" }),
  tooLarge: async () =>
    openai.files.create({ file: await openaiFile(large, "a"), purpose: "batch" }),
  tooLargeForAnthropic: async () =>
    anthropic.beta.files.upload({ file: await anthropicFile(large, "a") }),
  unknownKey: async () =>
    openOpenAI(unknownKey).files.create({ file: await openaiFile(large, "a"), purpose: "batch" }),
});
