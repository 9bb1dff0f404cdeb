// An MCP server over standard input and output: one tool, which returns what it is given.

import { createInterface } from "node:readline";

const tool = {
  name: "read",
  description: "Returns a note.",
  inputSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
};

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "notes", version: "1" },
  }),
  "tools/list": () => ({ tools: [tool] }),
  "tools/call": ({ arguments: given }) => ({
    content: [{ type: "text", text: `The note says ${given.name.length} characters.` }],
  }),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const result = answers[method]?.(params) ?? {};
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
}
