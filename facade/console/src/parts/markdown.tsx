// Markdown as elements. No text becomes HTML on the way: HTML in a text is shown as it was written.
import type { AlignType, Definition, Nodes, Root } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { mathFromMarkdown } from "mdast-util-math";
import { gfm } from "micromark-extension-gfm";
import { math } from "micromark-extension-math";
import type { ComponentChild, JSX } from "preact";
import { memo } from "preact/compat";
import { useMemo } from "preact/hooks";

import { CopyButton } from "./copy";
import { safeAddress } from "./links";
import { Maths } from "./maths";

// Longer texts are shown as they are: parsing them would hold up the page.
const MAX_LENGTH = 500_000;
// Nested deeper, a text is shown without its inner marks.
const MAX_DEPTH = 100;

const EXTENSIONS = {
  // Dollars are also prices, so that single ones mean no formula.
  extensions: [gfm({ singleTilde: false }), math({ singleDollarTextMath: false })],
  mdastExtensions: [gfmFromMarkdown(), mathFromMarkdown()],
};

/** Shows Markdown: CommonMark, GitHub's tables, task lists and footnotes, and `$$` formulas. */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const shown = useMemo(() => (text.length > MAX_LENGTH ? null : elements(text)), [text]);
  return shown === null ? <pre>{text}</pre> : <div class="markdown">{shown}</div>;
});

function elements(text: string): ComponentChild {
  const tree = fromMarkdown(withDelimiters(text), EXTENSIONS);
  return new Renderer(definitions(tree)).children(tree, 0);
}

/** Return a text with the formulas that models write as `\(…\)` and `\[…\]` between dollars. */
function withDelimiters(text: string): string {
  if (!text.includes("\\(") && !text.includes("\\[")) return text;
  // Code keeps what it has; it is matched first.
  return text.replace(
    /(```[\s\S]*?(?:```|$)|`[^`\n]*`)|\\\(([^\n]+?)\\\)|\\\[([\s\S]+?)\\\]/g,
    (whole: string, code?: string, inline?: string, block?: string) => {
      if (code !== undefined) return whole;
      return inline !== undefined ? `$$${inline}$$` : `\n$$\n${block?.trim() ?? ""}\n$$\n`;
    },
  );
}

function definitions(tree: Root): Map<string, Definition> {
  const found = new Map<string, Definition>();
  const open: Nodes[] = [tree];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node.type === "definition" && !found.has(node.identifier)) found.set(node.identifier, node);
    if ("children" in node) open.push(...node.children);
  }
  return found;
}

class Renderer {
  constructor(private readonly definitions: Map<string, Definition>) {}

  children(parent: Nodes, depth: number): ComponentChild[] {
    if (!("children" in parent)) return [];
    return parent.children.map((node) => this.node(node, depth + 1));
  }

  private node(node: Nodes, depth: number): ComponentChild {
    if (depth > MAX_DEPTH) return textOf(node);
    const inner = () => this.children(node, depth);
    switch (node.type) {
      case "text":
      case "html":
        return node.value;
      case "paragraph": {
        // Models write a formula of its own on one line, too: `$$…$$`.
        const [only, ...others] = node.children;
        if (only?.type === "inlineMath" && others.length === 0) {
          return <Maths tex={only.value} isBlock />;
        }
        return <p>{inner()}</p>;
      }
      case "heading": {
        // Below the headings of the page itself.
        const Heading = `h${Math.min(node.depth + 2, 6)}` as keyof JSX.IntrinsicElements & "h3";
        return <Heading>{inner()}</Heading>;
      }
      case "emphasis":
        return <em>{inner()}</em>;
      case "strong":
        return <strong>{inner()}</strong>;
      case "delete":
        return <del>{inner()}</del>;
      case "inlineCode":
        return <code>{node.value}</code>;
      case "code":
        return (
          <div class="code-block">
            <div class="bar">
              <span>{node.lang ?? ""}</span>
              <CopyButton text={node.value} label="Copy" name="the code" />
            </div>
            <pre tabIndex={0}>
              <code>{node.value}</code>
            </pre>
          </div>
        );
      case "inlineMath":
        return <Maths tex={node.value} />;
      case "math":
        return <Maths tex={node.value} isBlock />;
      case "break":
        return <br />;
      case "thematicBreak":
        return <hr />;
      case "blockquote":
        return <blockquote>{inner()}</blockquote>;
      case "list":
        return node.ordered ? <ol start={node.start ?? 1}>{inner()}</ol> : <ul>{inner()}</ul>;
      case "listItem":
        return (
          <li class={typeof node.checked === "boolean" ? "task" : undefined}>
            {typeof node.checked === "boolean" && (
              <span role="img" aria-label={node.checked ? "done" : "to do"}>
                {node.checked ? "☑ " : "☐ "}
              </span>
            )}
            {node.spread ? inner() : this.tight(node, depth)}
          </li>
        );
      case "table":
        return this.table(node, depth);
      case "link":
        return link(node.url, inner());
      case "linkReference": {
        const definition = this.definitions.get(node.identifier);
        return definition ? link(definition.url, inner()) : inner();
      }
      // Loading it would tell its server who reads the text.
      case "image":
        return link(node.url, node.alt || node.url);
      case "imageReference": {
        const definition = this.definitions.get(node.identifier);
        return definition ? link(definition.url, node.alt || definition.url) : node.alt;
      }
      case "footnoteReference":
        return <sup>[{node.label ?? node.identifier}]</sup>;
      case "footnoteDefinition":
        return (
          <div class="footnote">
            <sup>[{node.label ?? node.identifier}]</sup> {inner()}
          </div>
        );
      case "definition":
        return null;
      default:
        return inner();
    }
  }

  /** Return the children of an item of a list without blank lines: no paragraphs of their own. */
  private tight(item: Nodes & { type: "listItem" }, depth: number): ComponentChild[] {
    return item.children.flatMap((node) =>
      node.type === "paragraph" ? this.children(node, depth + 1) : [this.node(node, depth + 1)],
    );
  }

  private table(node: Extract<Nodes, { type: "table" }>, depth: number): ComponentChild {
    const [head, ...rows] = node.children;
    const cells = (row: typeof head, Cell: "th" | "td") =>
      row?.children.map((cell, column) => (
        <Cell class={alignment(node.align?.[column])}>{this.children(cell, depth + 2)}</Cell>
      ));
    return (
      <div class="scroll" tabIndex={0} role="region" aria-label="Table">
        <table>
          <thead>
            <tr>{cells(head, "th")}</tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr>{cells(row, "td")}</tr>
            ))}
          </tbody>
        </table>
      </div>
    );
  }
}

function alignment(align: AlignType | undefined): string | undefined {
  return align ? `align-${align}` : undefined;
}

function link(address: string, children: ComponentChild): ComponentChild {
  const href = safeAddress(address);
  if (href === undefined) return children;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

function textOf(node: Nodes): string {
  const texts: string[] = [];
  const open: Nodes[] = [node];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if ("value" in next) texts.push(next.value);
    if ("children" in next) open.push(...[...next.children].reverse());
  }
  return texts.join("");
}
