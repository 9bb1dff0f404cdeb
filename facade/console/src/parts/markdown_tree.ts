// Markdown as a tree: CommonMark, GitHub's tables, task lists and footnotes, and formulas.
import type { Root } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { mathFromMarkdown } from "mdast-util-math";
import { gfm } from "micromark-extension-gfm";
import { math } from "micromark-extension-math";

const EXTENSIONS = {
  // Dollars are also prices: `withFormulas` tells them apart.
  extensions: [gfm({ singleTilde: false }), math({ singleDollarTextMath: false })],
  mdastExtensions: [gfmFromMarkdown(), mathFromMarkdown()],
};

export function parseMarkdown(text: string): Root {
  return fromMarkdown(text, EXTENSIONS);
}
