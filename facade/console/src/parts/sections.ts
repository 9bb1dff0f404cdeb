// Sections of a Markdown text that can be parsed apart from one another, so that of a text that
// grows only the last one is parsed again.

export type Section =
  | { type: "markdown"; text: string }
  /** A fenced block of code; `isClosed` when its last line is there. */
  | { type: "code"; language: string; text: string; isClosed: boolean };

const FENCE = /^( *)(`{3,}|~{3,})([^`]*)$/;
// Lines that may belong to the list in front of a blank line.
const CONTINUES_LIST = /^(?:\s|[-*+](?:\s|$)|\d{1,9}[.)](?:\s|$))/;
const DEFINITION = /^ {0,3}\[(?!\^)[^\]\n]{1,999}\]:[ \t]*\S.*$/gm;
const FOOTNOTE = /^ {0,3}\[\^[^\]\n]{1,999}\]:/m;

/**
 * Return the sections of a text.
 *
 * They end at blank lines in front of what begins at the margin and is no item of a list, and around
 * blocks of code at the margin. A text with footnotes is one section, as is one that is not worth
 * the work; addresses of links that it defines are added to each section that may refer to them.
 */
export function sectionsOf(text: string, minLength: number): Section[] {
  if (text.length < minLength || FOOTNOTE.test(text)) return [{ type: "markdown", text }];
  const sections = split(text);
  const definitions = text.match(DEFINITION)?.join("\n") ?? "";
  if (definitions === "") return sections;
  return sections.map((section) =>
    section.type === "markdown" && section.text.includes("[")
      ? { ...section, text: `${section.text}\n\n${definitions}` }
      : section,
  );
}

function split(text: string): Section[] {
  const sections: Section[] = [];
  let lines: string[] = [];
  // The fence of the block of code that is open; nested in a list or a quote it ends no section.
  let fence: { mark: string; language: string; isNested: boolean } | undefined;
  // What ends the formula that is open, or "".
  let formulaEnd = "";
  let isAfterBlank = false;

  function flush(): void {
    if (lines.some((line) => line.trim() !== "")) {
      sections.push({ type: "markdown", text: lines.join("\n") });
    }
    lines = [];
  }

  for (const line of text.split("\n")) {
    if (fence !== undefined) {
      if (!closes(line, fence.mark)) lines.push(line);
      else if (fence.isNested) {
        lines.push(line);
        fence = undefined;
      } else {
        sections.push(codeSection(fence.language, lines, true));
        lines = [];
        fence = undefined;
      }
      isAfterBlank = false;
      continue;
    }
    const opening = formulaEnd === "" ? FENCE.exec(line) : null;
    if (opening !== null) {
      const [, indent = "", mark = "", info = ""] = opening;
      fence = { mark, language: info.trim().split(/\s/, 1)[0] ?? "", isNested: indent !== "" };
      if (fence.isNested) lines.push(line);
      else flush();
      isAfterBlank = false;
      continue;
    }
    const isBlank = line.trim() === "";
    if (isAfterBlank && !isBlank && formulaEnd === "" && !CONTINUES_LIST.test(line)) flush();
    formulaEnd = endOf(line, formulaEnd);
    lines.push(line);
    isAfterBlank = isBlank;
  }
  if (fence !== undefined && !fence.isNested) {
    sections.push(codeSection(fence.language, lines, false));
  } else flush();
  return sections;
}

function codeSection(language: string, lines: readonly string[], isClosed: boolean): Section {
  return { type: "code", language, text: lines.join("\n"), isClosed };
}

function closes(line: string, mark: string): boolean {
  const trimmed = line.trim();
  return trimmed.length >= mark.length && trimmed === mark[0]!.repeat(trimmed.length);
}

/** Return what ends the formula that is open after a line, or "". */
function endOf(line: string, open: string): string {
  if (open !== "") return line.includes(open) ? "" : open;
  const trimmed = line.trim();
  if (trimmed.startsWith("$$") && !trimmed.includes("$$", 2)) return "$$";
  return trimmed.startsWith("\\[") && !trimmed.includes("\\]") ? "\\]" : "";
}
