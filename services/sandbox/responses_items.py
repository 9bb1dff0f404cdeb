"""The response object of OpenAI's responses, and its output items.

Source: the types of the official SDK, `openai.types.responses`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, ToolUse, Usage
from services.common.ids import IdGenerator
from services.sandbox.model.answers import Answer, prompt_tokens
from services.sandbox.model.openai_shapes import token_logprobs
from services.sandbox.model.requests import tokens
from services.sandbox.model.signatures import encrypt, reveal
from services.sandbox.responses_request import ENCRYPTED, SOURCES

Json = dict[str, Any]
ItemKind = Literal["message", "reasoning", "function_call", "custom_tool_call", "web_search_call"]

_PREFIXES: Mapping[ItemKind, str] = {
    "message": "msg_",
    "reasoning": "rs_",
    "function_call": "fc_",
    "custom_tool_call": "ctc_",
    "web_search_call": "ws_",
}
# The result of a web search.
_PAGE = {"title": "The sandbox", "url": "https://sandbox.example/found"}
_INCOMPLETE = {conversation_pb2.FINISH_REASON_MAX_TOKENS: "max_output_tokens"}
# Fields of a request that its response repeats, with their defaults.
_REPEATED: Mapping[str, Any] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "safety_identifier": None,
    "store": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}


@dataclass(frozen=True, slots=True)
class Item:
    """An output item.

    Attributes:
        id: the item's id.
        kind: the item's type.
        blocks: texts and refusals of a message; a single block for any other item.
    """

    id: str
    kind: ItemKind
    blocks: Sequence[Block]


def kind_of(block: Block) -> ItemKind:
    """Return the type of the item that a block belongs to."""
    match block.WhichOneof("kind"):
        case "thinking" | "redacted_thinking":
            return "reasoning"
        case "tool_use":
            return "custom_tool_call" if block.tool_use.freeform else "function_call"
        case "server_tool_use":
            return "web_search_call"
    return "message"


def items_of(answer: Answer, new_id: IdGenerator) -> Iterator[Item]:
    """Yield the items of an answer; adjacent texts and refusals are one message."""
    message_blocks: list[Block] = []
    for block in answer.choices[0].blocks:
        kind = kind_of(block)
        if kind == "message":
            message_blocks.append(block)
            continue
        if message_blocks:
            yield Item(new_id(_PREFIXES["message"]), "message", message_blocks)
            message_blocks = []
        yield Item(new_id(_PREFIXES[kind]), kind, [block])
    if message_blocks:
        yield Item(new_id(_PREFIXES["message"]), "message", message_blocks)


class Writer:
    """Writes the items and the response object of one answer.

    Args:
        answer: the answer.
        head: `id`, `created_at` and `model`.
        body: the request.
    """

    def __init__(self, answer: Answer, head: Json, body: Mapping[str, Any]) -> None:
        self.answer = answer
        self._head = head
        self._body = body
        self._reasoning = body.get("reasoning") or {}
        self._include = body.get("include") or ()
        reason = _INCOMPLETE.get(answer.choices[0].finish.reason)
        self._incomplete = None if reason is None else {"reason": reason}
        blocks = answer.choices[0].blocks
        self._has_searched = any(block.HasField("server_tool_use") for block in blocks)

    @property
    def shows_thoughts(self) -> bool:
        """Whether the request asks for a summary of the thinking."""
        return bool(self._reasoning.get("summary"))

    @property
    def final_status(self) -> str:
        """The final status of the response."""
        return "incomplete" if self._incomplete else "completed"

    def response(self, status: str, output: Sequence[Json] = (), error: Json | None = None) -> Json:
        """Return the response object."""
        body = self._body
        is_over = status in ("completed", "incomplete")
        repeated = {
            name: value if body.get(name) is None else body[name]
            for name, value in _REPEATED.items()
        }
        text = body.get("text") or {}
        reasoning = {"effort": None, "summary": None} | self._reasoning
        return {
            **self._head,
            "object": "response",
            "status": status,
            "completed_at": self._head["created_at"] if status == "completed" else None,
            "error": error,
            "incomplete_details": self._incomplete if is_over else None,
            "output": list(output),
            **repeated,
            "reasoning": reasoning,
            "service_tier": "default" if is_over else "auto",
            "text": {"format": {"type": "text"}, "verbosity": "medium"} | text,
            "usage": _usage(self.answer.usage) if is_over else None,
        }

    def item(self, item: Item, *, is_last: bool) -> Json:
        """Return a finished item; the last one of an answer may be incomplete."""
        status = "incomplete" if is_last and self._incomplete else "completed"
        return self._item(item, item.blocks, status)

    def begun(self, item: Item) -> Json:
        """Return an item at its start, without content."""
        return self._item(item, (), "in_progress")

    def _item(self, item: Item, blocks: Sequence[Block], status: str) -> Json:
        head = {"id": item.id, "type": item.kind}
        match item.kind:
            case "message":
                parts = [self.part(block) for block in blocks]
                return {**head, "status": status, "content": parts, "role": "assistant"}
            case "reasoning":
                return {**head, "summary": self._summary(blocks), **self._encrypted(blocks)}
            case "web_search_call":
                action: Json = {
                    "type": "search",
                    "query": _query(item.blocks[0].server_tool_use),
                }
                if SOURCES in self._include:
                    action["sources"] = [{"type": "url", "url": _PAGE["url"]}]
                return {**head, "status": status, "action": action}
        return {**head, **_call(item.blocks[0].tool_use, bool(blocks), status)}

    def part(self, block: Block) -> Json:
        """Return the content part of a text or a refusal."""
        if block.HasField("refusal"):
            return {"type": "refusal", "refusal": block.refusal}
        return {
            "type": "output_text",
            "annotations": self.annotations(block),
            "logprobs": self.logprobs(tokens(block.text)),
            "text": block.text,
        }

    def annotations(self, block: Block) -> list[Json]:
        """Return the citations of a text: a page, if the answer includes a web search."""
        if not self._has_searched or not block.text:
            return []
        place = {"start_index": 0, "end_index": len(block.text)}
        return [{"type": "url_citation", **place, **_PAGE}]

    def logprobs(self, texts: Sequence[str]) -> list[Json]:
        """Return the log probabilities of tokens, if requested."""
        top = self.answer.top_logprobs
        if top is None:
            return []
        content: list[Json] = token_logprobs(list(texts), top)["content"]
        return content

    def _summary(self, blocks: Sequence[Block]) -> list[Json]:
        return [
            {"type": "summary_text", "text": block.thinking.text}
            for block in blocks
            if block.HasField("thinking") and self.shows_thoughts
        ]

    def _encrypted(self, blocks: Sequence[Block]) -> Json:
        if ENCRYPTED not in self._include:
            return {}
        thoughts = [encrypt(_thoughts(block)) for block in blocks]
        return {"encrypted_content": thoughts[0] if thoughts else None}


def _thoughts(block: Block) -> str:
    hidden = block.redacted_thinking
    return reveal(hidden) if hidden else block.thinking.text


def _call(call: ToolUse, is_whole: bool, status: str) -> Json:
    written = call.input if is_whole else ""
    head = {"call_id": f"call_{call.id}", "name": call.name}
    if call.freeform:
        return {"status": status, **head, "input": written}
    return {"status": status, "arguments": written, **head}


def _query(call: ToolUse) -> str:
    query: str = orjson.loads(call.input)["query"]
    return query


def _usage(usage: Usage) -> Json:
    read = prompt_tokens(usage)
    return {
        "input_tokens": read,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read_input_tokens,
            "cache_write_tokens": usage.cache_creation_input_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": read + usage.output_tokens,
    }
