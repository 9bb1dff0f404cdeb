"""Compaction of conversations: `context_management`, `compaction_trigger` and `/responses/compact`.

Source: OpenAI's API reference, "Compact a response", and its guide to compaction.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from facade.dialects.json_schemas import NAME, OBJECT, UNIX_SECONDS, NamedSchema, array, open_object
from facade.dialects.parsed_request import ParsedRequest
from facade.dialects.responses.response import usage_object
from facade.dialects.responses.unknown_fields import native_fields
from gateway.inference.v1.inference_pb2 import Compaction, GenerateRequest, GenerateResponse
from services.common.errors import invalid
from services.common.messages.plain_answer import PlainAnswer

CONTEXT_MANAGEMENT = "context_management"
_MAX_TOKENS = 1 << 53
COMPACTED = NamedSchema(
    "CompactedResponse",
    open_object(
        {
            "id": NAME,
            "object": {"const": "response.compaction"},
            "created_at": UNIX_SECONDS,
            "output": array(OBJECT),
            "usage": OBJECT,
        }
    ),
)


def set_threshold(request: GenerateRequest, management: object, prefix: str) -> None:
    """Set when a conversation is compacted.

    Entries of other types are passed on to providers of this dialect.

    Args:
        request: the request; modified.
        management: the value of `context_management`, not validated.
        prefix: prefix of the field's path.

    Raises:
        GatewayError: invalid, the threshold is not a number of tokens.
    """
    entries = management if isinstance(management, list) else []
    for index, entry in enumerate(entries):
        match entry:
            case {"type": "compaction"}:
                path = f"{prefix}{CONTEXT_MANAGEMENT}[{index}].compact_threshold"
                request.compaction.mode = Compaction.MODE_THRESHOLD
                request.compaction.threshold_tokens = _tokens(entry.get("compact_threshold"), path)


def check_compact(parsed: ParsedRequest) -> None:
    """Check a body of `/responses/compact`, whose request is complete.

    Raises:
        GatewayError: invalid, naming a field of responses that such a request has not.
    """
    state, request = parsed.state, parsed.request
    assert state is not None
    for name, is_set in (
        ("stream", parsed.stream),
        ("background", state.background),
        ("conversation", state.conversation is not None or request.HasField("memory")),
        ("prompt", "prompt" in request.extra.required),
    ):
        if is_set:
            raise invalid(name, f"{name}: not supported on this endpoint")


def render_compacted(
    response: GenerateResponse | PlainAnswer, response_id: str, created: int
) -> bytes:
    """Return a compacted conversation as JSON."""
    blocks = () if isinstance(response, PlainAnswer) else response.choices[0].blocks
    output: Sequence[Mapping[str, Any]] = [native_fields(block.opaque) for block in blocks]
    return orjson.dumps(
        {
            "id": response_id,
            "object": "response.compaction",
            "created_at": created,
            "output": output,
            "usage": usage_object(response.usage),
        }
    )


def _tokens(value: object, path: str) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MAX_TOKENS:
        raise invalid(path, f"{path}: must be a positive number of tokens")
    return value
