"""Parts shared by whole and streamed answers."""

import binascii
import re
from typing import Any

import orjson

from facade.dialects.anthropic.web_results import citation_json, result_json
from facade.dialects.call_arguments import arguments_object
from facade.dialects.gateway_objects import helpers_json
from facade.dialects.google_code import read_part, to_block
from gateway.conversation.v1 import conversation_pb2 as pb
from gateway.inference.v1.inference_pb2 import Finish, GenerateResponse
from services.common.messages.passthrough_answer import TokenCounts
from services.common.messages.plain_answer import PlainChoice

_STOP_REASONS = {
    pb.FINISH_REASON_UNSPECIFIED: None,
    pb.FINISH_REASON_END_TURN: "end_turn",
    pb.FINISH_REASON_MAX_TOKENS: "max_tokens",
    pb.FINISH_REASON_STOP_SEQUENCE: "stop_sequence",
    pb.FINISH_REASON_TOOL_USE: "tool_use",
    pb.FINISH_REASON_REFUSAL: "refusal",
    pb.FINISH_REASON_PAUSE_TURN: "pause_turn",
    pb.FINISH_REASON_CONTEXT_WINDOW: "model_context_window_exceeded",
}
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)
_ID_PREFIX = "msg_"


def message_id(upstream: str) -> str:
    """Return the id of an answer, from the provider's id."""
    if upstream.startswith(_ID_PREFIX):
        return upstream
    return _ID_PREFIX + _UNSAFE.sub("_", upstream)


def native_fields(extra: pb.Opaque) -> dict[str, Any]:
    """Return the unknown fields of an opaque object; none if it is of another dialect."""
    if extra.dialect != pb.DIALECT_ANTHROPIC:
        return {}
    fields: dict[str, Any] = orjson.loads(extra.json)
    return fields


def native_extra(holder: GenerateResponse | Finish | pb.Usage) -> dict[str, Any]:
    """Return this dialect's unknown fields of an answer, or of part of it.

    `HasField` is faster than reading an absent message.
    """
    return native_fields(holder.extra) if holder.HasField("extra") else {}


def raw_json(opaque: pb.Opaque) -> orjson.Fragment | None:
    """Return unknown JSON unchanged, on one line; None for another dialect."""
    if opaque.dialect == pb.DIALECT_GEMINI:
        if (part := read_part(opaque)) is not None:
            return orjson.Fragment(orjson.dumps(to_block(part)))
        return orjson.Fragment(orjson.dumps({**orjson.loads(opaque.json), "type": "google_part"}))
    if opaque.dialect != pb.DIALECT_ANTHROPIC:
        return None
    # Line breaks are white space here, as JSON strings escape them.
    return orjson.Fragment(opaque.json.replace(b"\r", b" ").replace(b"\n", b" "))


def stop_fields(finish: Finish | PlainChoice, refused: bool) -> dict[str, Any]:
    """Return the stop fields; `refused` is true if the answer contains a refusal.

    A reason without a canonical name is among the unknown fields.
    """
    reason = pb.FINISH_REASON_REFUSAL if refused else finish.reason
    matched = finish.stop_sequence if reason == pb.FINISH_REASON_STOP_SEQUENCE else ""
    fields = {"stop_reason": _STOP_REASONS[reason], "stop_sequence": matched or None}
    if isinstance(finish, PlainChoice) or not finish.HasField("extra"):
        return fields
    return {**fields, **native_fields(finish.extra)}


def usage_json(usage: pb.Usage | TokenCounts) -> dict[str, Any]:
    """Return the JSON of token usage."""
    thoughts = usage.reasoning_tokens
    further: dict[str, Any] = {}
    if isinstance(usage, pb.Usage) and (
        usage.helpers
        or usage.HasField("extra")
        or usage.web_search_requests
        or usage.web_fetch_requests
    ):
        further = _further_usage(usage)
    return {
        **({"output_tokens_details": {"thinking_tokens": thoughts}} if thoughts else {}),
        **further,
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
        "output_tokens": usage.output_tokens,
    }


def _further_usage(usage: pb.Usage) -> dict[str, Any]:
    """Return the fields of usage beside the token counts.

    Usage of server tools is the provider's plus that of gateway tools.
    """
    fields: dict[str, Any] = {}
    if usage.helpers:
        fields["gateway"] = {"helpers": helpers_json(usage.helpers)}
    fields |= native_extra(usage)
    searches, fetches = usage.web_search_requests, usage.web_fetch_requests
    if searches or fetches:
        reported = fields.get("server_tool_use")
        before = reported if isinstance(reported, dict) else {}
        fields["server_tool_use"] = {
            **before,
            "web_search_requests": (before.get("web_search_requests") or 0) + searches,
            "web_fetch_requests": (before.get("web_fetch_requests") or 0) + fetches,
        }
    return fields


def is_shown(block: pb.Block) -> bool:
    """Return whether a block is shown: neither empty text nor of another dialect."""
    match block.WhichOneof("kind"):
        case "text":
            return bool(block.text)
        case "refusal":
            return bool(block.refusal)
        case "opaque":
            return block.opaque.dialect in (pb.DIALECT_ANTHROPIC, pb.DIALECT_GEMINI)
        case _:
            return True


def block_json(block: pb.Block) -> dict[str, Any]:
    """Return the JSON of a canonical block.

    Raises:
        ValueError: the dialect has no such block.
    """
    fields: dict[str, Any]
    match block.WhichOneof("kind"):
        case "text":
            fields = {"type": "text", "text": block.text}
            if block.citations:
                fields["citations"] = [citation_json(one) for one in block.citations]
        case "refusal":
            fields = {"type": "text", "text": block.refusal}
        case "thinking":
            thinking = block.thinking
            fields = {
                "type": "thinking",
                "thinking": thinking.text,
                "signature": thinking.signature,
            }
        case "redacted_thinking":
            fields = {"type": "redacted_thinking", "data": block.redacted_thinking}
        case "media":
            fields = _media_json(block.media)
        case "tool_use":
            tool_use = block.tool_use
            fields = {
                "type": "tool_use",
                "id": tool_use.id,
                "name": tool_use.name,
                "input": arguments_object(tool_use.input),
            }
        case "server_tool_use":
            tool_use = block.server_tool_use
            fields = {
                "type": "server_tool_use",
                "id": tool_use.id,
                "name": tool_use.name,
                "input": arguments_object(tool_use.input),
            }
        case "server_tool_result":
            fields = result_json(block.server_tool_result)
        case kind:
            raise ValueError(f"an answer cannot hold a block of kind {kind}")
    return {**native_fields(block.extra), **fields} if block.HasField("extra") else fields


def _media_json(media: pb.Media) -> dict[str, Any]:
    """Return the JSON of a generated medium."""
    data = binascii.b2a_base64(media.data, newline=False).decode("ascii")
    return {
        "type": "image" if media.kind == pb.MEDIA_KIND_IMAGE else "document",
        "source": {"type": "base64", "media_type": media.mime_type, "data": data},
    }
