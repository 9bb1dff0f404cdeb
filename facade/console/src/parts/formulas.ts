// Formulas as models and people write them, brought into the one form that the parser reads.

// Words that stand apart, as a formula has at most one of.
const WORD = /(?:^|\s)\p{L}{2,}[,.;:]?(?=\s|$)/gu;
const LETTER_OR_DIGIT = /[\p{L}\p{N}]/u;
// What follows a formula without a space: "the $n$th".
const SUFFIX = /^(?:st|nd|rd|th|s)(?![\p{L}\p{N}])/u;

/**
 * Return a text with `\(…\)`, `\[…\]` and `$…$` between two dollars each.
 *
 * Dollars are also prices and names of variables: as in Pandoc, a single one begins a formula only
 * in front of a character that is no space, and ends it only behind one and not in front of a digit.
 * Code and escaped characters stay as they are.
 */
export function withFormulas(text: string): string {
  if (!/\\[([]|\$/.test(text)) return text;
  const parts: string[] = [];
  const special = /`+|\\[\s\S]?|\$+/g;
  // What the rest of the text has no end of, so that it is searched once.
  const endless = new Set<string>();
  let copied = 0;

  /** Return the place of an end, or -1. */
  function find(end: string, from: number): number {
    if (endless.has(end)) return -1;
    const place = text.indexOf(end, from);
    if (place < 0) endless.add(end);
    return place;
  }

  function put(start: number, end: number, formula: string): void {
    parts.push(text.slice(copied, start), formula);
    copied = end;
    special.lastIndex = end;
  }

  for (let match = special.exec(text); match !== null; match = special.exec(text)) {
    const [mark] = match;
    const { index } = match;
    const after = index + mark.length;
    if (mark.startsWith("`")) {
      const end = endOfCode(text, mark, after, endless);
      if (end >= 0) special.lastIndex = end;
    } else if (mark === "\\(") {
      const end = find("\\)", after);
      const formula = text.slice(after, end);
      if (end >= 0 && formula.trim() && !formula.includes("\n")) {
        put(index, end + 2, `$$${formula}$$`);
      }
    } else if (mark === "\\[") {
      const end = find("\\]", after);
      const formula = text.slice(after, end).trim();
      if (end >= 0 && formula) put(index, end + 2, `\n$$\n${formula}\n$$\n`);
    } else if (mark === "$$") {
      const end = find("$$", after);
      if (end >= 0) special.lastIndex = end + 2;
    } else if (mark === "$") {
      const end = endOfFormula(text, index);
      if (end >= 0) put(index, end + 1, `$$${text.slice(after, end)}$$`);
    }
  }
  return parts.join("") + text.slice(copied);
}

/** Return the place behind code that begins with backticks; -1 where nothing ends it. */
function endOfCode(text: string, mark: string, from: number, endless: Set<string>): number {
  if (endless.has(mark)) return -1;
  const runs = /`+/g;
  runs.lastIndex = from;
  for (let run = runs.exec(text); run !== null; run = runs.exec(text)) {
    if (run[0] === mark) return runs.lastIndex;
  }
  endless.add(mark);
  // A fence without an end is code up to the end of the text.
  return mark.length >= 3 ? text.length : -1;
}

/** Return the place of the dollar that ends the formula of another one; -1 where it is none. */
function endOfFormula(text: string, start: number): number {
  if (LETTER_OR_DIGIT.test(text[start - 1] ?? "") || /\s/.test(text[start + 1] ?? " ")) return -1;
  let end = start + 1;
  while (end < text.length && text[end] !== "$") {
    if (text[end] === "\n" || text[end] === "`") return -1;
    end += text[end] === "\\" ? 2 : 1;
  }
  const next = text[end + 1] ?? "";
  if (end >= text.length || next === "$") return -1;
  if (LETTER_OR_DIGIT.test(next) && !SUFFIX.test(text.slice(end + 1, end + 4))) return -1;
  const formula = text.slice(start + 1, end);
  if (/\s$/.test(formula)) return -1;
  const count = formula.includes("\\") ? 0 : (formula.match(WORD)?.length ?? 0);
  return count > (/^[\d.,]/.test(formula) ? 0 : 1) ? -1 : end;
}
