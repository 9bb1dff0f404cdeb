// The documents that the sidebar lists.
import { signal } from "@preact/signals";

import { json } from "../api/client";
import { onForget } from "./session";

interface ListedDocument {
  outer_id: string;
  name: string;
  /** RFC 3339 or Unix seconds. */
  time_create: number | string;
}

/** Documents that the user may open, the newest first. */
export const recentDocuments = signal<readonly { id: string; name: string }[]>([]);

export async function loadDocuments(): Promise<void> {
  try {
    const options = { method: "POST", json: {}, formatB: true } as const;
    const { data } = await json<{ data: { articles: { articles: ListedDocument[] }[] } }>(
      "/article/v1/doc/list",
      options,
    );
    recentDocuments.value = data.articles
      .flatMap(({ articles }) => articles)
      .sort((one, other) => (one.time_create < other.time_create ? 1 : -1))
      .map(({ outer_id, name }) => ({ id: outer_id, name }));
  } catch {
    // The page of documents says what fails.
  }
}

onForget(() => {
  recentDocuments.value = [];
});
