// Which of the files are shown, and in which order.
import { compareNames } from "../../parts/formats";
import type { StoreFile } from "./store";

export const ORDERS = ["newest", "oldest", "name", "largest", "kind"] as const;
export type Order = (typeof ORDERS)[number];

const byName = (one: StoreFile, other: StoreFile): number =>
  compareNames(one.filename, other.filename);

const COMPARE: Record<Order, (one: StoreFile, other: StoreFile) => number> = {
  newest: () => 0,
  oldest: (one, other) => Date.parse(one.created_at) - Date.parse(other.created_at),
  name: byName,
  largest: (one, other) => other.size_bytes - one.size_bytes,
  kind: (one, other) => compareNames(one.mime_type, other.mime_type) || byName(one, other),
};

export const isOrder = (value: string): value is Order => (ORDERS as readonly string[]).includes(value);

/** Return the files whose names, types or ids have a text, in an order; they come newest first. */
export function shownFiles(
  files: readonly StoreFile[],
  query: string,
  order: Order,
): readonly StoreFile[] {
  const wanted = query.trim().toLocaleLowerCase();
  const matching = files.filter(({ filename, mime_type, id }) =>
    `${filename}\n${mime_type}\n${id}`.toLocaleLowerCase().includes(wanted),
  );
  return order === "newest" ? matching : matching.toSorted(COMPARE[order]);
}
