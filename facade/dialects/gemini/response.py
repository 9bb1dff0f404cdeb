"""Whole answers of `generateContent`, and of `countTokens`."""

from typing import Any

import orjson

from facade.dialects.gemini.grounding import Grounding
from facade.dialects.gemini.parts import (
    SIGNATURE,
    finish_fields,
    is_own,
    logprobs_json,
    native_fields,
    part_of,
    usage_json,
)
from facade.dialects.gemini.signatures import packed
from gateway.conversation.v1.conversation_pb2 import Block
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import Choice, CountTokensResponse, GenerateResponse
from services.common.errors import GatewayError
from services.common.messages.plain_answer import PlainAnswer

Json = dict[str, Any]


def render_content(response: GenerateResponse | PlainAnswer, *, includes_thoughts: bool) -> bytes:
    """Return the JSON of an answer.

    Args:
        response: the answer.
        includes_thoughts: whether the answer has the model's thoughts.
    """
    if isinstance(response, PlainAnswer):
        response = response.response()
    candidates = [
        _candidate(choice, index, includes_thoughts)
        for index, choice in enumerate(response.choices)
    ]
    own = native_fields(response.extra) if response.HasField("extra") else {}
    return orjson.dumps(
        {
            **own,
            "candidates": candidates,
            "usageMetadata": usage_json(response.usage),
            "modelVersion": response.model,
            "responseId": response.id,
        }
    )


def _candidate(choice: Choice, index: int, includes_thoughts: bool) -> Json:
    parts: list[Json] = []
    waiting: list[Block] = []  # thoughts that no part carries yet
    grounding = Grounding()
    for block in choice.blocks:
        kind = block.WhichOneof("kind")
        if kind in ("thinking", "redacted_thinking") and not is_own(block):
            waiting.append(block)
            if kind == "redacted_thinking" or not includes_thoughts:
                continue
        elif kind == "server_tool_use":
            grounding.add_call(block.server_tool_use)
        part = part_of(block)
        if part is None or (part.get("text") == "" and len(part) == 1):
            continue
        if waiting and "thought" not in part:
            if signature := packed(waiting):
                part.setdefault(SIGNATURE, signature)
            waiting.clear()
        if kind == "text":
            grounding.begin_text()
            grounding.add_text(block.text)
            for citation in block.citations:
                grounding.cite(citation)
        parts.append(part)
    return {
        "content": {"parts": parts or [{"text": ""}], "role": "model"},
        **logprobs_json(choice.logprobs),
        **grounding.metadata(),
        **finish_fields(choice.finish),
        "index": index,
    }


def render_count(response: CountTokensResponse) -> bytes:
    """Return the JSON of a token count."""
    return orjson.dumps({"totalTokens": response.input_tokens})


def render_blocked(error: GatewayError) -> bytes | None:
    """Return the answer to a prompt that a provider's filter has blocked; None for other errors.

    Google reports it in an answer without candidates.
    """
    if error.reason != errors_pb2.REASON_CONTENT_FILTER:
        return None
    feedback = {"blockReason": "SAFETY", "blockReasonMessage": error.message}
    return orjson.dumps({"promptFeedback": feedback})
