// Comments of a document.
import { reviewsWords } from "../../words/documents/reviews";
import type { Session } from "./session";

export interface Author {
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

/** Read the comments of a document. */
export async function readThreads(
  session: Session,
  hasResolved: boolean,
  signal: AbortSignal,
): Promise<readonly Thread[]> {
  const list = { resolved: hasResolved };
  const read = session.call<{ comments: Thread[] }>("comment/list", () => list, signal);
  return (await read).comments;
}

/** Return the name of an author for people. */
export function authorName({ own, author }: { own: boolean; author: Author }): string {
  return own ? reviewsWords.you : author.name || reviewsWords.deletedUser;
}
