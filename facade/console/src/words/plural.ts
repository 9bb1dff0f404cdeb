// Counts with their nouns.
import { exact } from "../parts/formats";

/** Return a count with its noun, such as "1 file" or "2 files". */
export const plural = (count: number, one: string, many: string): string =>
  `${exact(count)} ${count === 1 ? one : many}`;
