// Turns as items of the Responses API, in which form they are sent by it and stored.
import type { Item } from "../../chats/conversations";
import {
  type AssistantTurn,
  type Attachment,
  type Block,
  type ToolCall,
  type Turn,
  type UserTurn,
  isImage,
} from "./conversation";
import { isObject } from "./settings";

/**
 * Return the items of a turn; the results of its calls come last.
 *
 * Blocks that only the Messages API has, such as calls of built-in tools, have no item.
 */
export function toItems(turn: Turn): Item[] {
  if (turn.role === "user") return [userItem(turn)];
  const results = turn.blocks.filter(
    (block): block is ToolCall => block.type === "call" && block.result !== undefined,
  );
  return [
    ...turn.blocks.flatMap(blockItem),
    ...results.map(({ id, result }) => ({
      type: "function_call_output",
      call_id: id,
      output: result,
    })),
  ];
}

function userItem({ text, attachments }: UserTurn): Item {
  const content: unknown[] = attachments.map((attachment) =>
    isImage(attachment)
      ? { type: "input_image", file_id: attachment.fileId, detail: "auto" }
      : { type: "input_file", file_id: attachment.fileId },
  );
  if (text) content.push({ type: "input_text", text });
  return { type: "message", role: "user", content };
}

function blockItem(block: Block): Item[] {
  switch (block.type) {
    case "text": {
      if (!block.text) return [];
      const content = [{ type: "output_text", text: block.text, annotations: [] }];
      return [{ type: "message", role: "assistant", content }];
    }
    case "thinking": {
      const content = [{ type: "reasoning_text", text: block.text }];
      const proof = block.signature ? { encrypted_content: block.signature } : {};
      return [{ type: "reasoning", summary: [], content, ...proof }];
    }
    case "call": {
      const { id, name } = block;
      return [{ type: "function_call", call_id: id, name, arguments: block.arguments || "{}" }];
    }
    case "image":
    case "other":
      return [];
  }
}

/** Return the turns of stored items, each with the ids of its own. */
export function toTurns(items: readonly Item[]): Turn[] {
  const turns: Turn[] = [];
  let hasResults = false;
  for (const item of items) {
    const id = String(item["id"]);
    const last = turns.at(-1);
    if (item["type"] === "message" && item["role"] !== "assistant") {
      turns.push({ ...toUserTurn(item["content"]), itemIds: [id] });
    } else if (item["type"] === "function_call_output" && last?.role === "assistant") {
      setResult(last, item);
      last.itemIds?.push(id);
      hasResults = true;
    } else {
      // What follows the results of a call is the next answer.
      const isNew = last?.role !== "assistant" || hasResults;
      const turn: AssistantTurn = isNew
        ? { role: "assistant", blocks: [], facts: {}, state: "done", itemIds: [] }
        : last;
      if (isNew) turns.push(turn);
      hasResults = false;
      turn.blocks.push(...toBlocks(item));
      turn.itemIds?.push(id);
    }
  }
  return turns;
}

function toUserTurn(content: unknown): UserTurn {
  if (!Array.isArray(content)) {
    return { role: "user", text: String(content ?? ""), attachments: [] };
  }
  const parts = content.filter(isObject);
  const text = parts.map((part) => String(part["text"] ?? "")).join("");
  const attachments = parts
    .filter((part) => typeof part["file_id"] === "string")
    .map((part): Attachment => {
      const fileId = String(part["file_id"]);
      // Of images the API takes no type; any of them is an image to every dialect.
      const type = part["type"] === "input_image" ? "image/png" : "";
      return { fileId, name: fileId, type };
    });
  return { role: "user", text, attachments };
}

function setResult(turn: AssistantTurn, item: Item): void {
  const output = item["output"];
  const call = turn.blocks.find((block) => block.type === "call" && block.id === item["call_id"]);
  if (call?.type === "call") {
    call.result = typeof output === "string" ? output : JSON.stringify(output);
  }
}

/** Return the blocks of an output item. */
export function toBlocks(item: Item): Block[] {
  switch (item["type"]) {
    case "message":
      return [{ type: "text", text: textOf(item["content"]) }];
    case "reasoning": {
      const text = textOf(item["content"]) || textOf(item["summary"]);
      const proof = item["encrypted_content"];
      return [{ type: "thinking", text, ...(proof ? { signature: String(proof) } : {}) }];
    }
    case "function_call":
      return [
        {
          type: "call",
          id: String(item["call_id"]),
          name: String(item["name"]),
          arguments: String(item["arguments"] ?? ""),
        },
      ];
    case "image_generation_call": {
      const { result, output_format: format } = item;
      if (typeof result !== "string" || result === "") return [{ type: "other", json: item }];
      return [{ type: "image", address: `data:image/${String(format ?? "png")};base64,${result}` }];
    }
    default:
      return [{ type: "other", json: item }];
  }
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .filter(isObject)
    .map((part) => String(part["text"] ?? part["refusal"] ?? ""))
    .join("");
}
