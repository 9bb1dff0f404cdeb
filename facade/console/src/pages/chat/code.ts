// A request as a program: curl, or the official SDKs. The key is a variable of the environment.
import type { Turn } from "./conversation";
import { DIALECTS } from "./dialects";
import type { DialectName, Settings } from "./settings";

export type Language = "curl" | "Python" | "TypeScript";

interface Sdk {
  /** Names of its packages. */
  python: string;
  typescript: string;
  client: string;
  /** What its base address adds to the gateway's. */
  base: string;
  call: string;
  /** The expressions that a program writes. */
  answer: { python: string; typescript: string };
}

const OPENAI = { python: "openai", typescript: "openai", client: "OpenAI", base: "/v1" };
const SDKS: Record<DialectName, Sdk> = {
  chat: {
    ...OPENAI,
    call: "chat.completions.create",
    answer: { python: "answer.choices[0].message", typescript: "answer.choices[0]?.message" },
  },
  responses: {
    ...OPENAI,
    call: "responses.create",
    answer: { python: "answer.output_text", typescript: "answer.output_text" },
  },
  messages: {
    python: "anthropic",
    typescript: "@anthropic-ai/sdk",
    client: "Anthropic",
    base: "",
    call: "messages.create",
    answer: { python: "answer.content", typescript: "answer.content" },
  },
};

/** Return a program that sends the next request of a conversation; throws SettingError. */
export function program(
  language: Language,
  settings: Settings,
  turns: readonly Turn[],
  origin: string,
): string {
  const dialect = DIALECTS[settings.dialect];
  const body = dialect.body(settings, turns);
  if (language === "curl") return curl(settings, dialect.path, body, origin);
  const known: Record<string, unknown> = {};
  const further: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(body)) {
    (dialect.known.includes(name) ? known : further)[name] = value;
  }
  return language === "Python"
    ? python(settings, known, further, origin)
    : typescript(settings, known, further, origin);
}

function curl(
  settings: Settings,
  path: string,
  body: Record<string, unknown>,
  origin: string,
): string {
  const headers =
    settings.dialect === "messages"
      ? ['-H "x-api-key: $GATEWAY_KEY"', "-H 'compat-version: 2023-06-01'"]
      : ['-H "Authorization: Bearer $GATEWAY_KEY"'];
  return [
    `curl ${quoted(origin + path)}`,
    ...headers,
    "-H 'Content-Type: application/json'",
    `-d ${quoted(JSON.stringify(body, null, 2))}`,
  ].join(" \\\n  ");
}

/** Return a word of a POSIX shell; a quote ends the quotes and is written outside of them. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function python(
  settings: Settings,
  known: Record<string, unknown>,
  further: Record<string, unknown>,
  origin: string,
): string {
  const fields = Object.entries(known).map(([name, value]) => `    ${name}=${literal(value, 1)},`);
  if (Object.keys(further).length > 0) fields.push(`    extra_body=${literal(further, 1)},`);
  const { python: sdk, client, base, call, answer } = SDKS[settings.dialect];
  return [
    "import os",
    "",
    `from ${sdk} import ${client}`,
    "",
    `client = ${client}(base_url=${JSON.stringify(origin + base)}, api_key=os.environ["GATEWAY_KEY"])`,
    `answer = client.${call}(`,
    ...fields,
    ")",
    `print(${answer.python})`,
    "",
  ].join("\n");
}

/** Return a value of JSON as a literal of Python. */
function literal(value: unknown, depth: number): string {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const indent = "    ".repeat(depth + 1);
  const end = "    ".repeat(depth);
  if (Array.isArray(value)) {
    if (value.length === 0) return "[]";
    const items = value.map((item) => `${indent}${literal(item, depth + 1)},\n`);
    return `[\n${items.join("")}${end}]`;
  }
  const entries = Object.entries(value);
  if (entries.length === 0) return "{}";
  const items = entries.map(
    ([name, item]) => `${indent}${JSON.stringify(name)}: ${literal(item, depth + 1)},\n`,
  );
  return `{\n${items.join("")}${end}}`;
}

function typescript(
  settings: Settings,
  known: Record<string, unknown>,
  further: Record<string, unknown>,
  origin: string,
): string {
  const hasFurther = Object.keys(further).length > 0;
  const fields = Object.entries(known).map(
    ([name, value]) => `  ${name}: ${indented(JSON.stringify(value, null, 2))},`,
  );
  if (hasFurther) fields.push("  ...further,");
  const { typescript: sdk, client, base, call, answer } = SDKS[settings.dialect];
  return [
    `import ${client} from "${sdk}";`,
    "",
    `const client = new ${client}({`,
    `  baseURL: ${JSON.stringify(origin + base)},`,
    "  apiKey: process.env.GATEWAY_KEY,",
    "});",
    // The SDK sends fields that it does not know, but has no types for them.
    ...(hasFurther ? [`const further: object = ${JSON.stringify(further, null, 2)};`] : []),
    `const answer = await client.${call}({`,
    ...fields,
    "});",
    `console.log(${answer.typescript});`,
    "",
  ].join("\n");
}

function indented(text: string): string {
  return text.replaceAll("\n", "\n  ");
}
