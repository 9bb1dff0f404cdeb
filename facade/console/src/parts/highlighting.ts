// Tokens of code, by highlight.js. Import this when the first code is highlighted. It returns a tree
// of tokens, from which pages build elements: no text becomes HTML.
import type { ElementContent } from "hast";
import { createLowlight } from "lowlight";

import { loadGrammar } from "./languages";

/** A part of a code; `kind` is a class of highlight.js, or "" for text without one. */
export interface Token {
  kind: string;
  text: string;
}

const lowlight = createLowlight();
// One code at a time, so that pages with many stay responsive.
let last: Promise<unknown> = Promise.resolve();

/** Return the tokens of a code in a language of the list, of which it may be any text. */
export function tokensOf(code: string, language: string): Promise<Token[]> {
  const tokens = last.then(async () => {
    if (!lowlight.registered(language)) lowlight.register(language, await loadGrammar(language));
    await new Promise((resolve) => setTimeout(resolve));
    return flattened(lowlight.highlight(language, code).children as ElementContent[], "");
  });
  last = tokens.catch(() => undefined);
  return tokens;
}

/** Return the tokens of a tree; the innermost class counts. */
function flattened(nodes: readonly ElementContent[], kind: string): Token[] {
  return nodes.flatMap((node) => {
    if (node.type === "text") return [{ kind, text: node.value }];
    if (node.type !== "element") return [];
    const classes = node.properties["className"];
    const own = Array.isArray(classes) ? String(classes[0]).replace(/^hljs-/, "") : kind;
    return flattened(node.children, own);
  });
}
