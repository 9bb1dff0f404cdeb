// Claude Code in print mode: an answer, a stream, a loop with a tool, structured output, a wrong
// key, and a session that outgrows its model.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { address, check, clouds, key, kinds, models, run, runSampled } from "../steps.mjs";

const folder = mkdtempSync(join(tmpdir(), "claude-"));
const program = join(import.meta.dirname, "node_modules", ".bin", "claude");
// The sandbox gives tools what the user said, so a file has the name of the tool that reads it.
writeFileSync(join(folder, "Read.txt"), "the text of the file\n");

function start(model, prompt, options = [], variables = { ANTHROPIC_AUTH_TOKEN: key }) {
  const quiet = { attribution: { commit: "", pr: "" } };
  return spawnSync(
    program,
    ["-p", prompt, "--output-format", "json", "--settings", JSON.stringify(quiet), ...options],
    {
      cwd: folder,
      encoding: "utf8",
      timeout: 180_000,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        PATH: process.env.PATH,
        HOME: folder,
        ANTHROPIC_BASE_URL: `${address}/coding`,
        ...(model && { ANTHROPIC_MODEL: model }),
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        ...variables,
      },
    },
  );
}

function lines(done) {
  const read = done.stdout
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));
  if (!read.length) throw new Error(`${done.error ?? ""} ${done.stdout} ${done.stderr}`);
  return read;
}

function answer(done) {
  const told = lines(done).at(-1);
  if (done.status !== 0 || told.is_error) throw new Error(JSON.stringify(told));
  return told;
}

const steps = {
  answer: (model) => {
    const told = answer(start(model, "hello there"));
    check(told.result.includes("hello there") && told.usage.output_tokens > 0, told);
  },
  toolLoop: (model) => {
    const told = answer(start(model, "Read.txt", ["--allowedTools", "Read"]));
    check(told.result.includes("the text of the file") && told.num_turns === 2, told);
  },
  stream: (model) => {
    const options = ["--output-format", "stream-json", "--verbose", "--include-partial-messages"];
    const done = start(model, "Read.txt", [...options, "--allowedTools", "Read"]);
    check(answer(done).result.includes("the text of the file"), lines(done).at(-1));
    const texts = lines(done).filter((line) => line.event?.delta?.type === "text_delta");
    check(texts.length > 2, texts);
  },
  structured: (model) => {
    const schema = {
      type: "object",
      properties: { name: { type: "string" }, population: { type: "integer" } },
      required: ["name", "population"],
    };
    const told = answer(start(model, "describe a place", ["--json-schema", JSON.stringify(schema)]));
    check(Number.isInteger(told.structured_output?.population), told);
  },
};

// Ways to send a key, which no provider sees.
const keys = {
  apiKey: (model) => {
    const told = answer(start(model, "hello there", [], { ANTHROPIC_API_KEY: key }));
    check(told.result.includes("hello there"), told);
  },
  apiKeyHelper: (model) => {
    // It sends the key in both headers.
    const helper = JSON.stringify({ apiKeyHelper: `echo ${key}` });
    const told = answer(start(model, "hello there", ["--settings", helper], {}));
    check(told.result.includes("hello there"), told);
  },
  wrongKey: (model) => {
    const wrong = { ANTHROPIC_AUTH_TOKEN: `gw-${"A".repeat(43)}` };
    const told = lines(start(model, "hello there", [], wrong)).at(-1);
    check(told.is_error && told.api_error_status === 401, told);
  },
};

// Two of these and what Claude Code says itself are more than the sandbox's `small` reads.
const longText = "some words of a long text. ".repeat(3_000);
const outgrown = {
  compacts: (model) => {
    // The sandbox would call every tool that the summary's instructions name.
    const withoutTools = ["--tools", "", "--output-format", "stream-json", "--verbose"];
    answer(start(model, `first: ${longText}`, withoutTools));
    const done = start(model, `second: ${longText}`, ["--continue", ...withoutTools]);
    check(answer(done).result.startsWith("Sandbox small: you said"), answer(done));
    const compactions = lines(done).filter((line) => line.subtype === "compact_boundary");
    check(compactions.length === 1, lines(done));
  },
};

// The gateway has `claude-*` for the models that it asks for by itself.
const unnamed = {
  defaultModel: () => {
    const told = answer(start("", "Read.txt", ["--allowedTools", "Read"]));
    check(told.result.includes("the text of the file"), told);
  },
  alias: () => {
    const told = answer(start("", "hello there", ["--model", "haiku"]));
    check(told.result.includes("hello there"), told);
  },
};

// Personalities that refuse most; `tests/matrix` has the others.
const isStrict = (model) => /^(native|mistral|claude-5)\//.test(model);

try {
  await runSampled(steps, "toolLoop");
  await run(keys, kinds.slice(0, 1));
  await run({ toolLoop: steps.toolLoop, stream: steps.stream }, clouds);
  await run({ toolLoop: steps.toolLoop }, models.slice(kinds.length).filter(isStrict));
  await run(outgrown, kinds.slice(0, 2).map((model) => model.replace(/[^/]+$/, "small")));
  await run(unnamed, [""]);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
