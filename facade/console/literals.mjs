// Prints the texts for people that stand in components, which belong into src/words: one a line.
import { readFile, readdir } from "node:fs/promises";
import { join, relative } from "node:path";

import { parse } from "acorn";
import { transform } from "esbuild";

const SOURCES = join(import.meta.dirname, "src");
// Properties of elements and components whose texts people read or hear.
const SPOKEN = /^(aria-(label|description|roledescription|valuetext)|alt|title|placeholder|label|question|name|hint|summary)$/;
// Properties whose texts are names for the browser.
const OPERATORS = new Set(["&&", "||", "??"]);
const LETTERS = /\p{L}{2}/u;

const [first = ""] = process.argv.slice(2);
const excepted = first.split(",").filter(Boolean);

/** Yield the texts that an expression may have as its value. */
function* textsOf(node) {
  switch (node?.type) {
    case "Literal":
      if (typeof node.value === "string") yield node.value;
      break;
    case "TemplateLiteral":
      yield node.quasis.map(({ value }) => value.cooked).join("…");
      for (const inner of node.expressions) yield* textsOf(inner);
      break;
    case "ConditionalExpression":
      yield* textsOf(node.consequent);
      yield* textsOf(node.alternate);
      break;
    case "LogicalExpression":
      if (OPERATORS.has(node.operator)) {
        yield* textsOf(node.left);
        yield* textsOf(node.right);
      }
      break;
    case "BinaryExpression":
      if (node.operator === "+") {
        yield* textsOf(node.left);
        yield* textsOf(node.right);
      }
      break;
  }
}

/** Yield the texts that elements show, anywhere in a tree. */
function* shownIn(node) {
  if (Array.isArray(node)) {
    for (const inner of node) yield* shownIn(inner);
    return;
  }
  if (typeof node?.type !== "string") return;
  if (node.type === "CallExpression" && node.callee.name === "element") {
    const [, properties, ...children] = node.arguments;
    for (const child of children) yield* textsOf(child);
    for (const property of properties?.properties ?? []) {
      const name = property.key?.value ?? property.key?.name ?? "";
      if (SPOKEN.test(name)) yield* textsOf(property.value);
    }
  }
  for (const inner of Object.values(node)) {
    if (inner !== null && typeof inner === "object") yield* shownIn(inner);
  }
}

for (const path of (await readdir(SOURCES, { recursive: true })).sort()) {
  if (!path.endsWith(".tsx") || excepted.some((folder) => path.startsWith(folder))) continue;
  const source = await readFile(join(SOURCES, path), "utf8");
  const { code } = await transform(source, {
    loader: "tsx",
    jsx: "transform",
    jsxFactory: "element",
    jsxFragment: "null",
    target: "es2022",
  });
  for (const text of shownIn(parse(code, { ecmaVersion: 2022, sourceType: "module" }))) {
    if (LETTERS.test(text)) console.log(`${relative(".", path)}: ${text.trim().replace(/\s+/g, " ")}`);
  }
}
