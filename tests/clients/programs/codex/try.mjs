// Codex without a terminal: an answer, a command, an edit of a file, a session that goes on and one
// that outgrows its model, a tool of an MCP server, a sub-agent, a WebSocket, a wrong key.

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { address, check, key, kinds, ofResponses, run, runSampled } from "../steps.mjs";

const folder = mkdtempSync(join(tmpdir(), "codex-"));
const lastMessage = join(folder, "last-message.txt");
const program = join(import.meta.dirname, "node_modules", ".bin", "codex");
const server = `{command="${process.execPath}", args=["${join(import.meta.dirname, "..", "notes.mjs")}"]}`;
const GATEWAY = "gateway";
// Of a provider with this name it expects that it compacts conversations.
const OPENAI = "OpenAI";
const SOCKETS = ", supports_websockets=true";
const provider = (name, more) =>
  `{name="${name}", base_url="${address}/beta/v1", env_key="GATEWAY_KEY"${more}}`;

function start(model, prompt, options = [], apiKey = key, name = GATEWAY, more = "") {
  rmSync(lastMessage, { force: true });
  const done = spawnSync(
    program,
    [
      ...["exec", ...options, "--json", "--skip-git-repo-check", "-m", model],
      ...["--output-last-message", lastMessage],
      ...["--dangerously-bypass-approvals-and-sandbox"],
      ...["-c", `model_providers.gateway=${provider(name, more)}`, "-c", 'model_provider="gateway"'],
      // Nothing is asked of OpenAI's servers.
      ...["-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false"],
      prompt,
    ],
    {
      cwd: folder,
      encoding: "utf8",
      timeout: 180_000,
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env.PATH, HOME: folder, GATEWAY_KEY: apiKey, RUST_LOG: "codex_api=info" },
    },
  );
  const events = done.stdout
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));
  const message = existsSync(lastMessage) ? readFileSync(lastMessage, "utf8") : "";
  const usesSocket = done.stderr.includes('transport="responses_websocket"');
  return { status: done.status, message, events, usesSocket, stderr: done.stderr.slice(-1_000) };
}

const patch = (file) => `*** Begin Patch\n*** Add File: ${file}\n+a line\n*** End Patch`;
const usage = (done) => done.events.findLast((event) => event.type === "turn.completed").usage;

// The last message of an answer. Its event may be missing: of many that come at once, Codex drops
// some where it is given too little of the processor.
function said(done) {
  check(done.status === 0 && done.message, done);
  return done.message;
}

const steps = {
  answer: (model) => {
    const done = start(model, "hello there");
    check(said(done).includes("hello there"), done);
    check(usage(done).output_tokens > 0, usage(done));
  },
  // The sandbox gives tools what the user said, so the command names the tool that runs it.
  command: (model) => {
    rmSync(join(folder, "exec_command.txt"), { force: true });
    said(start(model, "echo written > exec_command.txt"));
    check(readFileSync(join(folder, "exec_command.txt"), "utf8") === "written\n", "no file");
  },
  edit: (model) => {
    rmSync(join(folder, "exec_command.txt"), { force: true });
    const done = start(model, `apply_patch <<'EOF'\n${patch("exec_command.txt")}\nEOF`);
    check(existsSync(join(folder, "exec_command.txt")), done);
    check(readFileSync(join(folder, "exec_command.txt"), "utf8") === "a line\n", done);
    said(done);
  },
  session: (model) => {
    const first = start(model, "hello there");
    const done = start(model, "thank you", ["resume", "--last"]);
    check(said(first).includes("hello there") && said(done).includes("thank you"), done);
    check(usage(done).input_tokens > usage(first).input_tokens, usage(done));
  },
  // It sends its instructions ahead (`generate: false`), and then only what is new.
  webSocket: (model) => {
    rmSync(join(folder, "exec_command.txt"), { force: true });
    const done = start(model, "echo sent > exec_command.txt", [], key, GATEWAY, SOCKETS);
    check(said(done) && done.usesSocket, done);
    check(readFileSync(join(folder, "exec_command.txt"), "utf8") === "sent\n", "no file");
  },
};

// With what Codex says itself, more than the limit; a part of it is kept.
const longText = "some words of a long text. ".repeat(4_400);

// Tools of an MCP server and of sub-agents, which are in namespaces.
const withNotes = ["-c", `mcp_servers.notes=${server}`];
const called = (done, type) => done.events.filter((event) => event.item?.type === type);

const namespaces = {
  mcp: (model) => {
    const done = start(model, "mcp__notes__read", withNotes);
    const [call] = called(done, "mcp_tool_call").filter((event) => event.type === "item.completed");
    check(call?.item.server === "notes" && call.item.tool === "read", done);
    check(said(done).includes("The note says 16 characters"), done);
    // The earlier call is part of the conversation.
    const more = start(model, "thank you", ["resume", "--last", ...withNotes]);
    check(said(more).includes("thank you"), more);
  },
  subAgent: (model) => {
    // Of the arguments none is required.
    const prompt = 'multi_agent_v1__spawn_agent sandbox: arguments {"message": "hello there"}';
    const done = start(model, prompt);
    const spawned = called(done, "collab_tool_call").map((event) => event.item);
    check(spawned.some((item) => item.tool === "spawn_agent" && item.status === "completed"), done);
    said(done);
  },
  compaction: (model) => {
    start(model, `hello there: ${longText}`, withNotes);
    const before = compactions();
    const small = ["-c", "model_auto_compact_token_limit=36000"];
    const done = start(model, "thank you", ["resume", "--last", ...small, ...withNotes]);
    said(done);
    check(compactions() === before + 1, done);
  },
  remoteCompaction: (model) => {
    start(model, `my dog is called Rex: ${longText}`, withNotes, key, OPENAI);
    const before = compactions();
    const small = ["-c", "model_auto_compact_token_limit=36000", ...withNotes];
    const done = start(model, "thank you", ["resume", "--last", ...small], key, OPENAI);
    check(said(done).includes("[Summary of the conversation so far]"), done);
    check(compactions() === before + 1, done);
    // What it keeps is the gateway's summary, which only the gateway reads.
    check(sessions().includes('"encrypted_content":"gwall1.'), done);
  },
};

// The number of compactions in all sessions.
function compactions() {
  return sessions().split('"type":"compacted"').length - 1;
}

function sessions() {
  const kept = join(folder, ".codex", "sessions");
  const files = readdirSync(kept, { recursive: true }).filter((one) => one.endsWith(".jsonl"));
  return files.map((file) => readFileSync(join(kept, file), "utf8")).join("");
}

// Models that it knows by name find such tools by a search that it runs.
const search = {
  toolSearch: (model) => {
    const known = model.replace(/[^/]+$/, "gpt-5.5");
    const found = start(known, "tool_search for notes", withNotes);
    check(said(found).includes("mcp__notes"), found);
    const done = start(known, "mcp__notes__read", ["resume", "--last", ...withNotes]);
    check(called(done, "mcp_tool_call").length > 0, done);
    check(said(done).includes("The note says"), done);
  },
};

// It offers the tool `apply_patch`, whose input is no JSON, to models that it knows by name.
const freeform = {
  edit: (model) => {
    rmSync(join(folder, "apply_patch.txt"), { force: true });
    const done = start(model.replace(/[^/]+$/, "gpt-5.5"), patch("apply_patch.txt"));
    check(existsSync(join(folder, "apply_patch.txt")), done);
    check(readFileSync(join(folder, "apply_patch.txt"), "utf8") === "a line\n", done);
    said(done);
  },
};

const keys = {
  wrongKey: (model) => {
    const done = start(model, "hello there", [], `gw-${"A".repeat(43)}`);
    check(done.status !== 0 && JSON.stringify(done.events).includes("401"), done);
  },
};

try {
  await runSampled(steps, "command", ["openai", "native"], ofResponses);
  await runSampled(namespaces, "mcp");
  await runSampled(search, "toolSearch", ["openai"]);
  // Of the others, OpenAI's own responses alone have such tools.
  await run(freeform, ofResponses.slice(kinds.length));
  await run(keys, kinds.slice(0, 1));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
