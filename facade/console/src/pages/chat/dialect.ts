// What a dialect of the chat is.
import type { AssistantTurn, Turn } from "./conversation";
import type { Settings } from "./settings";

/** How a conversation is sent, and how its answer is read. */
export interface Dialect {
  path: string;
  /** Fields that its SDK knows; others go beside them. */
  known: readonly string[];
  /** Return the body of a request; throws SettingError. */
  body: (settings: Settings, turns: readonly Turn[]) => Record<string, unknown>;
  /** Return what is added to a body for a stream. */
  streamed: Record<string, unknown>;
  /** Add an event of the stream to an answer. */
  read: (turn: AssistantTurn, event: Record<string, unknown>) => void;
}
