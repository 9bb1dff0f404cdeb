// Markdown as elements. No text becomes HTML on the way: HTML in a text is shown as it was written.
import type { AlignType, Definition, Nodes, Root } from "mdast";
import type { ComponentChild, JSX } from "preact";
import { memo } from "preact/compat";
import { useMemo } from "preact/hooks";

import { words } from "../words/common";
import { CodeBlock } from "./code_block";
import { withFormulas } from "./formulas";
import { safeAddress } from "./links";
import { parseMarkdown } from "./markdown_tree";
import { Maths } from "./maths";
import { sectionsOf } from "./sections";

// Longer texts are shown as they are: parsing them would hold up the page.
const MAX_LENGTH = 500_000;
// Texts from this length on are parsed section by section: shorter ones are as fast in one.
const MIN_SPLIT = 10_000;
// A section of a growing text that is longer is shown as it is until it is complete.
const MAX_OPEN = 8_000;
// Nested deeper, a text is shown without its inner marks.
const MAX_DEPTH = 100;

/**
 * Shows Markdown: CommonMark, GitHub's tables, task lists and footnotes, and formulas.
 *
 * A text that grows (`isLive`) is parsed section by section, and each section once.
 */
export const Markdown = memo(function Markdown({
  text,
  isLive = false,
}: {
  text: string;
  isLive?: boolean;
}) {
  if (text.length > MAX_LENGTH) return <pre>{text}</pre>;
  const sections = sectionsOf(text, isLive ? 0 : MIN_SPLIT);
  return (
    <div class={text.length < MIN_SPLIT ? "markdown" : "markdown long"}>
      {sections.map((section, index) => {
        const isOpen = isLive && index === sections.length - 1;
        return section.type === "code" ? (
          <CodeBlock
            key={index}
            code={section.text}
            language={section.language}
            isComplete={section.isClosed || !isOpen}
          />
        ) : (
          <TextSection key={index} text={section.text} isOpen={isOpen} />
        );
      })}
    </div>
  );
});

const TextSection = memo(function TextSection({
  text,
  isOpen,
}: {
  text: string;
  isOpen: boolean;
}) {
  const isLong = isOpen && text.length > MAX_OPEN;
  const shown = useMemo(() => (isLong ? null : elements(text, isOpen)), [text, isOpen, isLong]);
  return shown === null ? <p class="plain">{text}</p> : <>{shown}</>;
});

function elements(text: string, isOpen: boolean): ComponentChild {
  const tree = parseMarkdown(withFormulas(text));
  return new Renderer(definitions(tree), !isOpen).children(tree, 0);
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
  constructor(
    private readonly definitions: Map<string, Definition>,
    private readonly isComplete: boolean,
  ) {}

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
          <CodeBlock
            code={node.value}
            language={node.lang ?? ""}
            isComplete={this.isComplete}
          />
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
              <span role="img" aria-label={node.checked ? words.task.done : words.task.open}>
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
      <div class="scroll" tabIndex={0} role="region" aria-label={words.table}>
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
