// Gemini CLI without a terminal: an answer, a tool, a tool of an MCP server, a wrong key.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { address, check, key, kinds, run, runSampled } from "../steps.mjs";

const folder = mkdtempSync(join(tmpdir(), "gemini-"));
const bundle = join(import.meta.dirname, "node_modules", "@google", "gemini-cli", "bundle");
const note = join(folder, "note.txt");
writeFileSync(note, "the text of the file\n");
mkdirSync(join(folder, ".gemini"));
const mcpServers = {
  notes: { command: process.execPath, args: [join(import.meta.dirname, "..", "notes.mjs")] },
};
// The sign-in that its dialog writes.
const security = { auth: { selectedType: "gemini-api-key" } };
writeFileSync(
  join(folder, ".gemini", "settings.json"),
  JSON.stringify({ security, mcpServers, privacy: { usageStatisticsEnabled: false } }),
);

function start(model, prompt, apiKey = key) {
  const options = ["--yolo", "--output-format", "json", "-m", model, "-p", prompt];
  const done = spawnSync(process.execPath, [join(bundle, "gemini.js"), ...options], {
    cwd: folder,
    encoding: "utf8",
    timeout: 180_000,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      GEMINI_API_KEY: apiKey,
      GOOGLE_GEMINI_BASE_URL: address,
      GEMINI_CLI_TRUST_WORKSPACE: "true",
    },
  });
  const output = done.stdout.slice(done.stdout.indexOf("{"));
  return {
    status: done.status,
    result: done.status === 0 ? JSON.parse(output) : {},
    output: `${done.stdout}${done.stderr}`.slice(-1_500),
  };
}

const steps = {
  answer: (model) => {
    const done = start(model, "hello there");
    check(done.result.response?.includes("hello there"), done);
  },
  toolLoop: (model) => {
    const done = start(model, `read_file sandbox: arguments ${JSON.stringify({ file_path: note })}`);
    check(done.result.stats?.tools.byName.read_file?.success === 1, done);
    check(done.result.response.includes("the text of the file"), done);
  },
  mcp: (model) => {
    const done = start(model, "mcp_notes_read");
    check(done.result.response?.includes("The note says"), done);
  },
};

const keys = {
  wrongKey: (model) => {
    const done = start(model, "hello there", `gw-${"A".repeat(43)}`);
    check(done.status !== 0 && !done.output.includes("Sandbox echo"), done);
  },
};

try {
  await runSampled(steps, "toolLoop", ["openai", "gemini"]);
  await run(keys, kinds.slice(0, 1));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
