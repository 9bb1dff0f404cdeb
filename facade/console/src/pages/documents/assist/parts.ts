// The blocks of a text in Markdown.
import type { ListItem, RootContent } from "mdast";

/** A block of a text. */
export interface Part {
  /** As it was written. */
  readonly source: string;
  readonly kind: "paragraph" | "heading" | "quote" | "list" | "other";
  /** The texts of the items of a list, without what stands in them beside; empty for others. */
  readonly items: readonly string[];
}

/** Return the blocks of a text; undefined where some name what others define, as notes do. */
export async function partsOf(text: string): Promise<readonly Part[] | undefined> {
  const { parseMarkdown } = await import("../../../parts/markdown_tree");
  const { children } = parseMarkdown(text);
  if (children.some(({ type }) => type === "definition" || type === "footnoteDefinition")) return undefined;
  return children.map((node) => ({
    source: sourceOf(node, text),
    kind: kindOf(node),
    items: node.type === "list" ? itemsOf(node.children, text) : [],
  }));
}

function kindOf(node: RootContent): Part["kind"] {
  switch (node.type) {
    // HTML is a text like any other.
    case "html":
    case "paragraph":
      return "paragraph";
    case "heading":
    case "list":
      return node.type;
    case "blockquote":
      return node.children.length === 1 && node.children[0]!.type === "paragraph" ? "quote" : "other";
    default:
      return "other";
  }
}

/** Return the texts of items; none where one has more than a line of text. */
function itemsOf(items: readonly ListItem[], text: string): string[] {
  const sources = items.map(({ children, checked }) => {
    const [only] = children;
    const isText = children.length === 1 && only?.type === "paragraph" && typeof checked !== "boolean";
    return isText ? sourceOf(only, text) : "\n";
  });
  return sources.some((source) => source.includes("\n")) ? [] : sources;
}

function sourceOf({ position }: RootContent, text: string): string {
  return text.slice(position!.start.offset, position!.end.offset);
}
