// What the document editing API sends and takes.

export interface Leaf {
  type?: "default" | "latex" | "inlinecode" | "url";
  text: string;
  url?: string;
  bold?: boolean;
  italic?: boolean;
  textDecoration?: "underline" | "line-through";
  color?: string;
  /** Id of a reference. */
  cite?: string;
}

export interface Picture {
  url?: string;
  fileId?: string;
  alt?: string;
  title?: string;
  width?: number | string;
  height?: number | string;
}

export interface Author {
  id?: number;
  name: string;
  /** 0: none. */
  institutionId?: number;
  isStar?: boolean;
}

export interface Institution {
  id?: number;
  name: string;
}

export type Css = Record<string, string | number>;
export type Style = { style?: Css } & Record<string, unknown>;

/** A block, or an element inside one. */
export interface Block {
  id: string;
  type: string;
  children?: (Leaf | Block)[];
  style?: Style;
  /** Of a label's item. */
  name?: string;
  equation?: string;
  code?: string;
  language?: string;
  image?: Picture[];
  author?: Author[];
  institution?: Institution[];
  colSpan?: number;
  rowSpan?: number;
}

/** A block to insert: its ids are the server's to make. */
export type NewBlock = Omit<Block, "id" | "children"> & {
  id?: string;
  children?: (Leaf | NewBlock)[];
};

/** A block with what follows from the document around it. */
export interface BlockState {
  block: Block;
  /** The style that applies: the article's and its own. */
  style: Style;
  /** Markdown. */
  text: string;
}

export interface Reference {
  id: string;
  [field: string]: string | string[] | undefined;
}

export interface ArticleStyle {
  global?: Record<string, unknown>;
  [type: string]: unknown;
}

export interface Changes {
  revision: number;
  order?: string[];
  changed?: string[];
  style?: ArticleStyle;
  reference?: Reference[];
  cited?: string[];
}

export interface Article {
  outer_id: string;
  name: string;
  group: number;
  /** Unix seconds. */
  time_create: number;
  sharePermission: { operation: boolean; permission: string };
}

export interface ArticleGroup {
  group_id: number;
  name: string;
  isCreator: boolean;
  articles: Article[];
}

export const NAMES: Record<string, string> = {
  title: "Title",
  h1: "Heading 1",
  h2: "Heading 2",
  h3: "Heading 3",
  paragraph: "Paragraph",
  abstract: "Abstract",
  label: "Label",
  list: "List",
  table: "Table",
  code: "Code",
  equation: "Formula",
  image: "Figure",
  author: "Authors",
};

/** Types whose children are leaves, so that one turns into another with its text. */
export const TEXT_TYPES = ["title", "h1", "h2", "h3", "paragraph", "abstract", "label"];

export function isLeaf(node: Leaf | Block | NewBlock): node is Leaf {
  return "text" in node;
}

/** The leaves that stand right below an element. */
export function leavesOf(block: Block): Leaf[] {
  return (block.children ?? []).filter(isLeaf);
}

/** The elements that stand right below an element. */
export function elementsOf(block: Block): Block[] {
  return (block.children ?? []).filter((child): child is Block => !isLeaf(child));
}
