// Qwen Code without a terminal: an answer, a tool, a session that goes on, a tool of an MCP server,
// a wrong key.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { address, check, key, kinds, run, runSampled } from "../steps.mjs";

const folder = mkdtempSync(join(tmpdir(), "qwen-"));
const program = join(import.meta.dirname, "node_modules", ".bin", "qwen");
const note = join(folder, "note.txt");
writeFileSync(note, "the text of the file\n");

function start(model, prompt, options = [], apiKey = key) {
  const done = spawnSync(
    program,
    [
      prompt,
      // The sandbox calls every tool that a prompt names, as Qwen Code's own does.
      ...["--bare", "--yolo", "--auth-type", "openai", "--output-format", "json"],
      ...["-m", model, ...options],
    ],
    {
      cwd: folder,
      encoding: "utf8",
      timeout: 180_000,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        PATH: process.env.PATH,
        HOME: folder,
        OPENAI_API_KEY: apiKey,
        OPENAI_BASE_URL: `${address}/v1`,
      },
    },
  );
  const output = done.stdout.slice(done.stdout.indexOf("["));
  return {
    status: done.status,
    events: output.startsWith("[") ? JSON.parse(output) : [],
    stderr: done.stderr.slice(-1_000),
  };
}

function answer(done) {
  const last = done.events.at(-1);
  check(done.status === 0 && last?.type === "result" && !last.is_error, done);
  return last.result;
}

const results = (done) =>
  done.events
    .flatMap((event) => event.message?.content ?? [])
    .filter((block) => block.type === "tool_result")
    .map((block) => block.content);

const mcpServers = {
  notes: { command: process.execPath, args: [join(import.meta.dirname, "..", "notes.mjs")] },
};

const steps = {
  answer: (model) => {
    const done = start(model, "hello there");
    check(answer(done).includes("hello there"), done);
    check(done.events.at(-1).usage.output_tokens > 0, done.events.at(-1));
  },
  toolLoop: (model) => {
    const done = start(model, `read_file sandbox: arguments ${JSON.stringify({ file_path: note })}`);
    check(results(done).join().includes("the text of the file"), done);
    check(answer(done).includes("the text of the file"), done);
  },
  session: (model) => {
    answer(start(model, "hello there"));
    const done = start(model, "thank you: sandbox: recite", ["--continue"]);
    check(answer(done).includes("hello there"), done);
  },
  mcp: (model) => {
    const options = ["--mcp-config", JSON.stringify({ mcpServers })];
    const done = start(model, "mcp__notes__read", options);
    check(results(done).join().includes("The note says"), done);
    check(answer(done).includes("The note says"), done);
  },
};

const keys = {
  wrongKey: (model) => {
    const done = start(model, "hello there", [], `gw-${"A".repeat(43)}`);
    const told = JSON.stringify(done);
    check(told.includes("401") && !told.includes("Sandbox echo"), done);
  },
};

try {
  await runSampled(steps, "toolLoop", ["anthropic"]);
  await run(keys, kinds.slice(0, 1));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
