// opencode without a terminal: an answer, a command, a session that goes on, a tool of an MCP
// server, a wrong key.

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { address, check, key, kinds, run, runSampled } from "../steps.mjs";

const folder = mkdtempSync(join(tmpdir(), "opencode-"));
const program = join(import.meta.dirname, "node_modules", ".bin", "opencode");
const made = join(folder, "made.txt");

function settings(model, apiKey) {
  return JSON.stringify({
    autoupdate: false,
    share: "disabled",
    permission: { edit: "allow", bash: "allow" },
    provider: {
      gateway: {
        npm: "@ai-sdk/openai-compatible",
        name: "gateway",
        options: { baseURL: `${address}/v1`, apiKey },
        models: { [model]: { name: model } },
      },
    },
    mcp: {
      notes: {
        type: "local",
        command: [process.execPath, join(import.meta.dirname, "..", "notes.mjs")],
      },
    },
  });
}

function start(model, prompt, options = [], apiKey = key) {
  const done = spawnSync(
    program,
    ["run", "--model", `gateway/${model}`, "--format", "json", ...options],
    {
      cwd: folder,
      encoding: "utf8",
      timeout: 180_000,
      input: prompt, // quoted if it were an argument
      env: {
        PATH: process.env.PATH,
        HOME: folder,
        OPENCODE_CONFIG_CONTENT: settings(model, apiKey),
        OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_DISABLE_MODELS_FETCH: "1",
        OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      },
    },
  );
  const events = done.stdout
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));
  return { status: done.status, events, stderr: done.stderr.slice(-1_000) };
}

const parts = (done, type) => done.events.filter((event) => event.type === type);

function said(done) {
  check(done.status === 0, done);
  const texts = parts(done, "text").map((event) => event.part.text);
  check(texts.length > 0, done);
  return texts.at(-1);
}

const steps = {
  answer: (model) => {
    const done = start(model, "hello there");
    check(said(done).includes("hello there"), done);
  },
  command: (model) => {
    rmSync(made, { force: true });
    const command = { command: `echo written > ${made}`, description: "Writes a file" };
    const done = start(model, `bash sandbox: arguments ${JSON.stringify(command)}`);
    check(existsSync(made) && readFileSync(made, "utf8") === "written\n", done);
    said(done);
  },
  session: (model) => {
    said(start(model, "hello there"));
    const done = start(model, "thank you: sandbox: recite", ["--continue"]);
    check(said(done).includes("hello there"), done);
  },
  mcp: (model) => {
    const done = start(model, "notes_read");
    check(JSON.stringify(parts(done, "tool_use")).includes("The note says"), done);
    check(said(done).includes("The note says"), done);
  },
};

const keys = {
  wrongKey: (model) => {
    const done = start(model, "hello there", [], `gw-${"A".repeat(43)}`);
    check(parts(done, "text").length === 0, done);
    check(JSON.stringify(done).includes("401"), done);
  },
};

try {
  await runSampled(steps, "command", ["anthropic"]);
  await run(keys, kinds.slice(0, 1));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
