// The dialects of the chat.
import { chat } from "./chat";
import type { Dialect } from "./dialect";
import { messages } from "./messages";
import { responses } from "./responses";
import type { DialectName } from "./settings";

export const DIALECTS: Record<DialectName, Dialect> = { chat, messages, responses };
