// What the document editing API sends and takes.

/** A cited reference with the words beside its number. */
export interface CitationItem {
  id: string;
  prefix?: string;
  locator?: string;
  suffix?: string;
  narrative?: boolean;
}

export interface Leaf {
  type?: "default" | "latex" | "inlinecode" | "url" | "note" | "ref";
  text: string;
  url?: string;
  bold?: boolean;
  italic?: boolean;
  textDecoration?: "underline" | "line-through";
  color?: string;
  script?: "super" | "sub";
  /** Id of a reference, or several citations in one pair of brackets. */
  cite?: string | CitationItem[];
  /** Of a formula, or of a reference to a block. */
  form?: "display" | "number";
  /** Label of the block that a leaf of type `ref` names. */
  ref?: string;
  /** The text of a leaf of type `note`. */
  children?: Leaf[];
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
  /** Several institutions; institutionId is the first. */
  institutionIds?: number[];
  orcid?: string;
  email?: string;
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
  /** Of a table: the number of columns. */
  colLength?: number;
  label?: string;
  caption?: Leaf[];
  /** Of a table: the alignment of each column. */
  align?: (string | null)[];
  /** Of a list: its first number. */
  start?: number;
}

/** A block to insert: its ids are the server's to make. */
export type NewBlock = Omit<Block, "id" | "children"> & {
  id?: string;
  children?: (Leaf | NewBlock)[];
};

/** What a block is to hold; null takes an optional part away. */
export type BlockContent = Partial<Omit<NewBlock, "label" | "caption" | "align">> & {
  label?: string | null;
  caption?: Leaf[] | null;
  align?: (string | null)[] | null;
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
  /** What references to blocks say, by their labels. */
  labels?: Record<string, ShownLabel>;
}

export interface ShownLabel {
  text: string;
  number: string;
}

/** What a conversion left out. */
export interface Lost {
  place: string;
  reason: string;
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

/** Types whose children are leaves, so that one turns into another with its text. */
export const TEXT_TYPES = [
  ...["title", "h1", "h2", "h3", "h4", "h5", "h6"],
  ...["paragraph", "quote", "abstract", "label"],
];

export const HEADING_TYPES = ["h1", "h2", "h3", "h4", "h5", "h6"];

/** Types that become each other without loss of text. */
export const CONVERTIBLE_TYPES = [...TEXT_TYPES, "list", "code", "equation"];

/** Types that texts can refer to by a label, and those with a caption. */
export const LABELLED_TYPES = [
  ...HEADING_TYPES,
  ...["image", "table", "equation", "code"],
];
export const CAPTIONED_TYPES = ["image", "table"];

/** Whether a leaf stands for something that is no text: a note, or a block. */
export function isObject(leaf: Leaf): boolean {
  return leaf.type === "note" || leaf.type === "ref";
}

/** The citations of a leaf. */
export function citationsOf({ cite }: Leaf): CitationItem[] {
  if (cite === undefined) return [];
  return typeof cite === "string" ? [{ id: cite }] : cite;
}

/** Whether two leaves, or their marks, cite the same. */
export function isSameCite(one: Pick<Leaf, "cite">, other: Pick<Leaf, "cite">): boolean {
  return JSON.stringify(one.cite) === JSON.stringify(other.cite);
}

export function isLeaf(node: Leaf | Block | NewBlock): node is Leaf {
  return "text" in node;
}

/** The leaves that stand right below an element. */
export function leavesOf(block: Block): Leaf[] {
  return (block.children ?? []).filter(isLeaf);
}

/** Return whether a block is an element, or contains it. */
export function holds(block: Block | undefined, elementId: string): boolean {
  if (block === undefined) return false;
  if (block.id === elementId) return true;
  return elementsOf(block).some((child) => holds(child, elementId));
}

/** The elements that stand right below an element. */
export function elementsOf(block: Block): Block[] {
  return (block.children ?? []).filter((child): child is Block => !isLeaf(child));
}
