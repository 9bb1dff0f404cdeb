// Searches of the web by the gateway, read by the stream helpers of the official Node SDKs, of
// this generation and the one before.

import Anthropic from "@anthropic-ai/sdk";
import OldAnthropic from "anthropic-old";
import OpenAI from "openai";
import OldOpenAI from "openai-old";
import { address, key, model, run } from "./steps.mjs";

const content = "Please call web_search about Typst.";
const messages = [{ role: "user", content }];
const asked = { model, messages, max_tokens: 3000, use_built_in_tools: true };
const chat = { model, messages, web_search_options: {} };

const search = async (Client) => {
  const client = new Client({ baseURL: `${address}/beta`, apiKey: key, maxRetries: 0 });
  const first = await client.messages.stream(asked).finalMessage();
  const next = await client.messages
    .stream({
      ...asked,
      messages: [
        ...messages,
        { role: "assistant", content: first.content },
        { role: "user", content: "sandbox: recite" },
      ],
    })
    .finalMessage();
  return { first, next };
};

const searchChat = async (Client) => {
  const client = new Client({ baseURL: `${address}/beta/v1`, apiKey: key, maxRetries: 0 });
  const chats = client.chat.completions.stream ? client.chat : client.beta.chat;
  return chats.completions.stream(chat).finalMessage();
};

await run({
  anthropic: () => search(Anthropic),
  anthropicOld: () => search(OldAnthropic),
  openai: () => searchChat(OpenAI),
  openaiOld: () => searchChat(OldOpenAI),
});
