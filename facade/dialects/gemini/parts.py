"""Parts of an answer, and what whole and streamed answers share."""

import binascii
from collections.abc import Mapping
from typing import Any, Final

import orjson

from facade.dialects.call_arguments import arguments_object
from facade.dialects.gateway_objects import helpers_json
from gateway.conversation.v1 import conversation_pb2 as pb
from gateway.inference.v1.inference_pb2 import Finish
from services.common.ids import UNNAMED_CALL
from services.common.messages.passthrough_answer import TokenCounts
from services.common.messages.plain_answer import PlainChoice

Json = dict[str, Any]

SIGNATURE: Final = "thoughtSignature"
# What the gateway's prices are read from beside Google's counts.
_BILLED: Final = "server_tool_use"
_REASONS: Final[Mapping[pb.FinishReason.ValueType, str]] = {
    pb.FINISH_REASON_UNSPECIFIED: "FINISH_REASON_UNSPECIFIED",
    pb.FINISH_REASON_END_TURN: "STOP",
    pb.FINISH_REASON_MAX_TOKENS: "MAX_TOKENS",
    pb.FINISH_REASON_STOP_SEQUENCE: "STOP",
    pb.FINISH_REASON_TOOL_USE: "STOP",
    pb.FINISH_REASON_REFUSAL: "SAFETY",
    pb.FINISH_REASON_PAUSE_TURN: "OTHER",
    pb.FINISH_REASON_CONTEXT_WINDOW: "MAX_TOKENS",
}


def native_fields(extra: pb.Opaque) -> Json:
    """Return the unknown fields of an opaque object; none if it is of another dialect."""
    if extra.dialect != pb.DIALECT_GEMINI or not extra.json:
        return {}
    fields: Json = orjson.loads(extra.json)
    return fields


def is_own(block: pb.Block) -> bool:
    """Return whether a block comes from a provider of this dialect, with all that it needs back."""
    return block.extra.dialect == pb.DIALECT_GEMINI


def part_of(block: pb.Block) -> Json | None:
    """Return the part of a complete block; None for one that the dialect does not show."""
    part: Json
    match block.WhichOneof("kind"):
        case "text":
            part = {"text": block.text}
        case "refusal":
            part = {"text": block.refusal}
        case "thinking":
            part = {"text": block.thinking.text, "thought": True}
        case "media":
            part = {"inlineData": _blob(block.media)}
        case "tool_use":
            return _call(block)
        case "opaque" if block.opaque.dialect == pb.DIALECT_GEMINI:
            return native_fields(block.opaque)
        case _:
            return None
    return {**native_fields(block.extra), **part} if block.HasField("extra") else part


def _call(block: pb.Block) -> Json:
    use = block.tool_use
    call: Json = {"name": use.name, "args": arguments_object(use.input)}
    if not use.id.startswith(UNNAMED_CALL):
        call["id"] = use.id
    fields = native_fields(block.extra)
    others = fields.pop("functionCall", {})
    return {"functionCall": {**others, **call}, **fields}


def _blob(media: pb.Media) -> Json:
    data = binascii.b2a_base64(media.data, newline=False).decode("ascii")
    return {"mimeType": media.mime_type, "data": data}


def finish_fields(finish: Finish | PlainChoice) -> Json:
    """Return the fields of a candidate that ends; the provider's own replace those made here."""
    fields: Json = {"finishReason": _REASONS[finish.reason]}
    if isinstance(finish, PlainChoice) or not finish.HasField("extra"):
        return fields
    return {**fields, **native_fields(finish.extra)}


def usage_json(usage: pb.Usage | TokenCounts) -> Json:
    """Return the JSON of token usage: a provider's own is unchanged."""
    further: Json = {}
    if isinstance(usage, pb.Usage):
        if usage.helpers:
            further["gateway"] = {"helpers": helpers_json(usage.helpers)}
        if usage.HasField("extra") and (own := native_fields(usage.extra)):
            own.pop(_BILLED, None)
            return {**own, **further}
    cached, thoughts = usage.cache_read_input_tokens, usage.reasoning_tokens
    prompt = usage.input_tokens + cached + usage.cache_creation_input_tokens
    return {
        "promptTokenCount": prompt,
        "candidatesTokenCount": usage.output_tokens - thoughts,
        "totalTokenCount": prompt + usage.output_tokens,
        **({"cachedContentTokenCount": cached} if cached else {}),
        **({"thoughtsTokenCount": thoughts} if thoughts else {}),
        **further,
    }


def logprobs_json(logprobs: bytes) -> Json:
    """Return `logprobsResult` for the log probabilities of a choice; none without any."""
    content = (orjson.loads(logprobs).get("content") or ()) if logprobs else ()
    if not content:
        return {}
    return {
        "logprobsResult": {
            "chosenCandidates": [_token(one) for one in content],
            "topCandidates": [
                {"candidates": [_token(other) for other in one.get("top_logprobs") or ()]}
                for one in content
            ],
        }
    }


def _token(one: Mapping[str, Any]) -> Json:
    return {"token": one.get("token"), "logProbability": one.get("logprob")}
