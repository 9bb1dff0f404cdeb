"""Thinking of earlier turns as fields of an assistant's message, and signatures of its calls. Pure.

The state of a provider goes only to providers that can read it; see
`services.inference.request.thinking`.
"""

from collections.abc import Sequence

from gateway.conversation.v1.conversation_pb2 import Block
from services.inference.learned.refusals import (
    CALLS_WITHOUT_THOUGHTS,
    NO_THOUGHTS,
    OF_MESSAGES,
    REASONING_CONTENT,
    UNSIGNED_CALLS,
)
from services.inference.providers.gemini import signatures
from services.inference.providers.opaque_json import Json
from services.inference.providers.openai import reasoning_details
from services.inference.providers.openai.fields import OpenAIFields

_REASONING = "reasoning"


def add_thoughts(message: Json, thoughts: Sequence[Block], fields: OpenAIFields) -> None:
    """Add the model's thinking to a message, for servers that may require it.

    DeepSeek and others reject a tool loop without it.
    """
    if not thoughts:
        if CALLS_WITHOUT_THOUGHTS in fields.refused_fields:
            message[REASONING_CONTENT] = NO_THOUGHTS
        return
    readable = [block.thinking for block in thoughts if block.HasField("thinking")]
    text = "".join(thinking.text for thinking in readable)
    if not text and CALLS_WITHOUT_THOUGHTS in fields.refused_fields:
        message[REASONING_CONTENT] = NO_THOUGHTS
    elif readable:
        _add(message, REASONING_CONTENT, text, "thinking", fields)
        if readable[-1].field == _REASONING:
            _add(message, _REASONING, text, "thinking.field", fields)
    states = [(state_of(block), block.thinking.text) for block in thoughts]
    if details := reasoning_details.details_in(states):
        _add(message, reasoning_details.FIELD, details, "thinking", fields)


def _add(message: Json, name: str, value: object, path: str, fields: OpenAIFields) -> None:
    """Add a field that OpenAI's own API does not have, unless the model rejects it."""
    refused_fields = fields.refused_fields
    if name in refused_fields or OF_MESSAGES + name in refused_fields:
        fields.drop(f"messages[].blocks[].{path}")
    elif not fields.server.newest:
        message[name] = value


def state_of(block: Block) -> str:
    """Return the signature of thinking, or redacted thinking."""
    return block.redacted_thinking or block.thinking.signature


def sign_call(call: Json, signature: str, fields: OpenAIFields) -> None:
    """Add Gemini's signature to an unsigned call, if the server requires one."""
    if UNSIGNED_CALLS in fields.refused_fields:
        for name, value in signatures.signed_fields(signature).items():
            call.setdefault(name, value)


def returned_fields(native: Json, fields: OpenAIFields) -> Json:
    """Return the unknown fields of a message or call that a caller sends back.

    Servers that require signatures are Gemini's, and read those of its own API.
    """
    return signatures.for_server(native, reads_signatures=UNSIGNED_CALLS in fields.refused_fields)
