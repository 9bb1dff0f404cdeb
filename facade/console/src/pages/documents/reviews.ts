// Comments and suggestions of a document.
import { reviewsWords } from "../../words/documents/reviews";
import type { Session } from "./session";

interface Author {
  readonly user: string;
  readonly name: string;
}

export interface Comment {
  readonly id: string;
  readonly text: string;
  readonly author: Author;
  readonly own: boolean;
  readonly time: number;
}

export interface Thread extends Comment {
  readonly blockId: string;
  readonly quote?: string;
  readonly orphaned: boolean;
  readonly resolved: boolean;
  readonly replies: readonly Comment[];
}

export interface Suggestion {
  readonly id: string;
  readonly author: Author;
  readonly own: boolean;
  readonly time: number;
  readonly endpoint: string;
  readonly stale: boolean;
  readonly blocks: readonly { blockId: string; before?: string; after?: string }[];
  readonly references: readonly string[];
  readonly style: boolean;
  readonly properties: boolean;
}

export interface Reviews {
  readonly threads: readonly Thread[];
  readonly suggestions: readonly Suggestion[];
  readonly hasMore: boolean;
}

/** Read the comments of a document, and the first of its suggestions. */
export async function readReviews(
  session: Session,
  hasResolved: boolean,
  signal: AbortSignal,
): Promise<Reviews> {
  const list = { resolved: hasResolved };
  const [comments, suggested] = await Promise.all([
    session.call<{ comments: Thread[] }>("comment/list", () => list, signal),
    session.call<{ suggestions: Suggestion[]; hasMore: boolean }>(
      "suggestion/list",
      () => ({}),
      signal,
    ),
  ]);
  return {
    threads: comments.comments,
    suggestions: suggested.suggestions,
    hasMore: suggested.hasMore,
  };
}

/** Return the name of an author for people. */
export function authorName({ own, author }: { own: boolean; author: Author }): string {
  return own ? reviewsWords.you : author.name || reviewsWords.deletedUser;
}
