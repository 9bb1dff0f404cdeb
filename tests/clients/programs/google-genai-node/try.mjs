// Google's SDK for Node: whole and streamed, chats, functions, schemas, files, embeddings.

import { FunctionCallingConfigMode, GoogleGenAI, Type } from "@google/genai";
import { address, check, embedding, key, kinds, ofResponses, run } from "../steps.mjs";

const client = (apiKey = key) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl: address } });
const ai = client();
const lookUp = {
  name: "look_up",
  description: "Look up a place.",
  parameters: { type: Type.OBJECT, properties: { place: { type: Type.STRING } } },
};

async function textOf(stream) {
  let text = "";
  for await (const chunk of stream) text += chunk.text ?? "";
  return text;
}

const steps = {
  whole: async (model) => {
    const answer = await ai.models.generateContent({ model, contents: "hello there" });
    check(answer.text.includes("hello there"), answer);
    check(answer.usageMetadata.totalTokenCount > 0, answer);
  },
  streamed: async (model) => {
    const stream = await ai.models.generateContentStream({ model, contents: "hello there" });
    const text = await textOf(stream);
    check(text.includes("hello there"), text);
  },
  chat: async (model) => {
    const chat = ai.chats.create({ model });
    await chat.sendMessage({ message: "hello there" });
    await textOf(await chat.sendMessageStream({ message: "and you" }));
    const answer = await chat.sendMessage({ message: "sandbox: recite" });
    check(answer.text.includes("hello there"), answer);
  },
  functions: async (model) => {
    const config = {
      tools: [{ functionDeclarations: [lookUp] }],
      toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.AUTO } },
      thinkingConfig: { thinkingBudget: 1024 },
    };
    const chat = ai.chats.create({ model, config });
    const asked = await chat.sendMessage({ message: "use the tool look_up" });
    const [call] = asked.functionCalls;
    check(call.name === "look_up", asked);
    const functionResponse = { id: call.id, name: call.name, response: { output: "sunny" } };
    const answer = await chat.sendMessage({ message: [{ functionResponse }] });
    check(answer.text.includes("sunny"), answer);
  },
  schema: async (model) => {
    const properties = { name: { type: Type.STRING } };
    const responseSchema = { type: Type.OBJECT, properties, required: ["name"] };
    const config = { responseMimeType: "application/json", responseSchema };
    const answer = await ai.models.generateContent({ model, contents: "a place", config });
    check(Object.keys(JSON.parse(answer.text)).join() === "name", answer);
  },
};

const others = {
  counts: async (model) => {
    const counted = await ai.models.countTokens({ model, contents: "hello there" });
    check(counted.totalTokens > 0, counted);
    check((await ai.models.get({ model })).name === `models/${model}`, model);
  },
  files: async (model) => {
    const blob = new Blob(["the text of the file"], { type: "text/plain" });
    const file = await ai.files.upload({ file: blob, config: { displayName: "note.txt" } });
    const fileData = { fileUri: file.uri, mimeType: file.mimeType };
    const contents = [{ role: "user", parts: [{ text: "read this" }, { fileData }] }];
    const answer = await ai.models.generateContent({ model, contents });
    // The sandbox is the only one to say what it got in place of its text.
    check(model.startsWith("sandbox/") || answer.text.includes("the text of the file"), answer);
    await ai.files.delete({ name: file.name });
  },
  wrongKey: async (model) => {
    const other = client(`gw-${"A".repeat(43)}`);
    const status = await other.models
      .generateContent({ model, contents: "hello" })
      .then(() => 200, (error) => error.status);
    check(status === 401, status);
  },
};

const vectors = {
  embeddings: async (model) => {
    const made = await ai.models.embedContent({ model, contents: ["one", "two"] });
    check(made.embeddings.length === 2 && made.embeddings[0].values.length > 1, made);
  },
};

await run(steps, ofResponses);
await run(others, kinds);
await run(vectors, embedding);
