// The difference between two texts, word by word.

export interface Piece {
  kind: "same" | "removed" | "added";
  text: string;
}

// Words of the parts that differ, above which these are shown whole: the comparison is quadratic.
const MOST_WORDS = 1000;

/** Return the pieces of two texts that are equal, and of which one was replaced by another. */
export function wordDiff(before: string, after: string): Piece[] {
  const one = words(before);
  const other = words(after);
  let start = 0;
  while (start < one.length && start < other.length && one[start] === other[start]) start += 1;
  let end = 0;
  while (
    end < one.length - start &&
    end < other.length - start &&
    one[one.length - 1 - end] === other[other.length - 1 - end]
  ) {
    end += 1;
  }
  const pieces: Piece[] = [];
  add(pieces, "same", one.slice(0, start).join(""));
  compare(pieces, one.slice(start, one.length - end), other.slice(start, other.length - end));
  add(pieces, "same", one.slice(one.length - end).join(""));
  return pieces;
}

function words(text: string): string[] {
  return text.match(/\s+|[\p{L}\p{N}]+|./gsu) ?? [];
}

function compare(pieces: Piece[], one: string[], other: string[]): void {
  if (one.length > MOST_WORDS || other.length > MOST_WORDS) {
    add(pieces, "removed", one.join(""));
    add(pieces, "added", other.join(""));
    return;
  }
  // Lengths of the longest common subsequences of what follows.
  const width = other.length + 1;
  const lengths = new Uint16Array((one.length + 1) * width);
  for (let x = one.length - 1; x >= 0; x -= 1) {
    for (let y = other.length - 1; y >= 0; y -= 1) {
      lengths[x * width + y] =
        one[x] === other[y]
          ? lengths[(x + 1) * width + y + 1]! + 1
          : Math.max(lengths[(x + 1) * width + y]!, lengths[x * width + y + 1]!);
    }
  }
  let x = 0;
  let y = 0;
  while (x < one.length || y < other.length) {
    if (x < one.length && y < other.length && one[x] === other[y]) {
      add(pieces, "same", one[x]!);
      x += 1;
      y += 1;
    } else if (
      y === other.length ||
      (x < one.length && lengths[(x + 1) * width + y]! >= lengths[x * width + y + 1]!)
    ) {
      add(pieces, "removed", one[x]!);
      x += 1;
    } else {
      add(pieces, "added", other[y]!);
      y += 1;
    }
  }
}

function add(pieces: Piece[], kind: Piece["kind"], text: string): void {
  if (text === "") return;
  const last = pieces.at(-1);
  if (last?.kind === kind) last.text += text;
  else pieces.push({ kind, text });
}
