// Batches with both official Node SDKs, new and old, with baseURL and apiKey alone.

import Anthropic from "@anthropic-ai/sdk";
import AnthropicOld from "anthropic-old";
import OpenAI, { toFile } from "openai";
import OpenAIOld from "openai-old";
import { address, collect, key, model, run } from "./steps.mjs";

const body = { model, messages: [{ role: "user", content: "Hello" }] };
const text = ["a", "b"]
  .map((id) => ({ custom_id: id, method: "POST", url: "/v1/chat/completions", body }))
  .map((line) => JSON.stringify(line))
  .join("\n");
const pause = () => new Promise((resolve) => setTimeout(resolve, 20));

const openai = (Client) => async () => {
  const client = new Client({ baseURL: `${address}/beta/v1`, apiKey: key, maxRetries: 0 });
  const file = await client.files.create({
    file: await toFile(Buffer.from(text), "in.jsonl"),
    purpose: "batch",
  });
  let batch = await client.batches.create({
    input_file_id: file.id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
    metadata: { project: "alpha" },
  });
  while (!["completed", "failed"].includes(batch.status)) {
    await pause();
    batch = await client.batches.retrieve(batch.id);
  }
  const content = await (await client.files.content(batch.output_file_id)).text();
  const ids = content.trim().split("\n").map((line) => JSON.parse(line).custom_id);
  const listed = (await collect(client.batches.list({ limit: 1 }))).map((each) => each.id);
  const cancelled = await client.batches.cancel(batch.id);
  return { status: batch.status, ids, listed: listed.includes(batch.id), end: cancelled.status };
};

const anthropic = (Client) => async () => {
  const client = new Client({ baseURL: `${address}/beta`, apiKey: key, maxRetries: 0 });
  const batches = client.messages.batches;
  const params = { ...body, max_tokens: 20 };
  let batch = await batches.create({
    requests: ["a", "b"].map((id) => ({ custom_id: id, params })),
  });
  while (batch.processing_status !== "ended") {
    await pause();
    batch = await batches.retrieve(batch.id);
  }
  const results = await collect(await batches.results(batch.id));
  const listed = (await collect(batches.list({ limit: 1 }))).map((each) => each.id);
  const cancelled = await batches.cancel(batch.id);
  const deleted = await batches.delete(batch.id);
  return {
    status: deleted.type,
    ids: results.map((each) => each.custom_id),
    listed: listed.includes(batch.id),
    end: cancelled.processing_status,
  };
};

await run({
  openai: openai(OpenAI),
  openaiOld: openai(OpenAIOld),
  anthropic: anthropic(Anthropic),
  anthropicOld: anthropic(AnthropicOld),
});
