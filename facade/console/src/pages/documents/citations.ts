// How citations and the list of references are written on the page. The API's Markdown has numbers.
import { referencesWords } from "../../words/documents/references";
import type { Reference } from "./types";

export interface CitationStyle {
  readonly name: string;
  /** Return the mark of a citation; `number` is undefined before it is known. */
  mark(number: number | undefined, reference: Reference | undefined): string;
  /** Return an entry of the list, without its number. */
  entry(reference: Reference): string;
}

export const CITATION_STYLES: Record<string, CitationStyle> = {
  numbers: {
    name: referencesWords.styles.numbers,
    mark: (number) => `[${number ?? "?"}]`,
    entry: (reference) =>
      sentence([
        authors(reference, ", "),
        quoted(reference["title"]),
        [text(reference["journal"]), text(reference["volume"]), text(reference["pages"])]
          .filter(Boolean)
          .join(", "),
        text(reference["publisher"]),
        text(reference["year"]),
      ]),
  },
  years: {
    name: referencesWords.styles.years,
    mark: (number, reference) => {
      const year = text(reference?.["year"]) || referencesWords.noDate;
      return reference === undefined ? `[${number ?? "?"}]` : `(${shortAuthors(reference)}, ${year})`;
    },
    entry: (reference) =>
      sentence([
        `${authors(reference, ", ") || shortAuthors(reference)} (${text(reference["year"]) || referencesWords.noDate})`,
        text(reference["title"]),
        [text(reference["journal"]), text(reference["volume"]), text(reference["pages"])]
          .filter(Boolean)
          .join(", "),
        text(reference["publisher"]),
      ]),
  },
};

/** Return what a reference is called in lists to choose from. */
export function title(reference: Reference): string {
  return (
    text(reference["title"]) || text(reference["name"]) || text(reference["tag"]) || reference.id
  );
}

/** Return the family names of the authors of a reference, or its title. */
export function shortAuthors(reference: Reference): string {
  const names = list(reference["author"]).map((name) => name.trim().split(/\s+/).at(-1) ?? name);
  if (names.length === 0) return title(reference);
  if (names.length > 2) return referencesWords.andOthers(names[0]!);
  return names.join(" & ");
}

function authors(reference: Reference, between: string): string {
  return list(reference["author"]).join(between);
}

function quoted(value: string | string[] | undefined): string {
  return text(value) && `“${text(value)}”`;
}

function sentence(parts: string[]): string {
  return parts
    .filter(Boolean)
    .map((part) => part.replace(/\.$/, "") + ".")
    .join(" ");
}

export function text(value: string | string[] | undefined): string {
  return list(value).join(", ");
}

function list(value: string | string[] | undefined): string[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value : [value];
}
