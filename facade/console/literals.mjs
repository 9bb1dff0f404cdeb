// Fails if texts for people stand in the sources outside of src/words: what components show or say, and
// sentences anywhere. A part of `make check`.
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";

import { parse } from "acorn";
import { transform } from "esbuild";

const SOURCES = join(import.meta.dirname, "src");
// Properties whose texts people read or hear.
const SHOWN = /^(aria-(label|description|roledescription|valuetext)|alt|title|placeholder|label|question|hint)$/;
// Elements whose content is the same in all languages.
const VERBATIM = new Set(["code", "kbd"]);
const OPERATORS = new Set(["&&", "||", "??", "+"]);
const LETTERS = /\p{L}{2}/u;
// The files of texts, and the examples of the gallery.
const EXCEPTED = ["words/", "gallery/"];
const SENTENCE = /^\p{Lu}\p{Ll}+.* \p{Ll}+/u;

/** Yield the texts that the value of an expression may have. */
function* textsOf(node) {
  if (node?.type === "Literal" && typeof node.value === "string") yield node.value;
  if (node?.type === "TemplateLiteral") {
    yield node.quasis.map(({ value }) => value.cooked).join("…");
    for (const inner of node.expressions) yield* textsOf(inner);
  }
  if (node?.type === "ConditionalExpression") {
    yield* textsOf(node.consequent);
    yield* textsOf(node.alternate);
  }
  if (OPERATORS.has(node?.operator)) {
    yield* textsOf(node.left);
    yield* textsOf(node.right);
  }
}

/** Yield what an element shows: its texts, and those of its properties. */
function* shownBy(element) {
  const [kind, properties, ...children] = element.arguments;
  if (!VERBATIM.has(kind.value)) for (const child of children) yield* textsOf(child);
  for (const { key, value } of properties?.properties ?? []) {
    if (SHOWN.test(key?.value ?? key?.name ?? "")) yield* textsOf(value);
  }
}

/** Yield the texts for people in a tree. */
function* textsIn(node) {
  if (node?.type === "CallExpression" && node.callee.name === "element") {
    for (const text of shownBy(node)) if (LETTERS.test(text)) yield text;
  }
  for (const text of textsOf(node)) if (SENTENCE.test(text)) yield text;
  for (const inner of Object.values(node)) {
    if (inner !== null && typeof inner === "object") yield* textsIn(inner);
  }
}

for (const path of (await readdir(SOURCES, { recursive: true })).sort()) {
  if (!/\.tsx?$/.test(path) || EXCEPTED.some((folder) => path.startsWith(folder))) continue;
  const { code } = await transform(await readFile(join(SOURCES, path), "utf8"), {
    loader: path.endsWith("x") ? "tsx" : "ts",
    jsx: "transform",
    jsxFactory: "element",
    jsxFragment: "null",
  });
  const texts = textsIn(parse(code, { ecmaVersion: "latest", sourceType: "module" }));
  for (const text of new Set(texts)) {
    console.error(`facade/console/src/${path}: move this text into src/words: ${text.trim()}`);
    process.exitCode = 1;
  }
}
