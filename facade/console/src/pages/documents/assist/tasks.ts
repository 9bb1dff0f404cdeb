// What a model is asked to do in a document, and what it is told for that.
import { promptWords } from "../../../words/documents/prompts";

export type TaskName = "write" | "continue" | "improve" | "shorten" | "change" | "sources";

/** Tasks for which a person says what is wanted. */
export const INSTRUCTED: readonly TaskName[] = ["write", "change"];
/** Tasks whose text stands below the block, and replaces nothing. */
export const WRITING: readonly TaskName[] = ["write", "continue"];

/** What a model knows of the document. */
export interface Context {
  readonly title: string;
  /** Markdown in front of what it is asked about, and behind it. */
  readonly before: string;
  readonly after: string;
  /** What it is asked about: Markdown of whole blocks, or the plain text of a passage. */
  readonly text: string;
  readonly instruction: string;
}

export interface Prompt {
  readonly instructions: string;
  readonly input: string;
}

/** Characters of the document around, as the last of what is in front and the first of what is behind. */
const BEFORE = 12_000;
const AFTER = 4_000;

/** Return what a model is told. */
export function promptFor(task: TaskName, context: Context): Prompt {
  const { title, before, after, text, instruction } = context;
  const place = WRITING.includes(task) ? `${text}\n\n<here/>` : `<text>\n${text}\n</text>`;
  const around = [before.slice(-BEFORE), place, after.slice(0, AFTER)].filter(Boolean).join("\n\n");
  return {
    instructions: task === "sources" ? promptWords.researcher : promptWords.writer,
    input: `<document title=${JSON.stringify(title)}>\n${around}\n</document>\n\n${promptWords.tasks[task](instruction)}`,
  };
}

/** Return the text of an answer without a fence that a model put around all of it. */
export function withoutFence(answer: string): string {
  const text = answer.trim();
  const fenced = /^```(?:markdown|md)?\n([\s\S]*)\n```$/.exec(text)?.[1];
  return fenced === undefined || fenced.includes("```") ? text : fenced.trim();
}
