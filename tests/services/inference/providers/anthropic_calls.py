"""Calls to Anthropic's adapter, and what it makes of them, held against the official SDK."""

from functools import cache
from typing import Any

import orjson
import pytest

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Message, Opaque
from gateway.errors.v1.errors_pb2 import Reason
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import GatewayError
from services.inference.providers.anthropic.endpoints import OWN
from services.inference.providers.anthropic.request import build_count, build_request
from services.inference.providers.base import Call, Target
from tests.services.inference.providers.caller_paths import path_of, with_named_fields
from tests.upstream.checks import Checks, load_checks

OPENAI = conversation_pb2.DIALECT_OPENAI
ANTHROPIC = conversation_pb2.DIALECT_ANTHROPIC
NONE = conversation_pb2.DIALECT_UNSPECIFIED
USER = conversation_pb2.ROLE_USER
ASSISTANT = conversation_pb2.ROLE_ASSISTANT
SYSTEM = conversation_pb2.ROLE_SYSTEM
DEVELOPER = conversation_pb2.ROLE_DEVELOPER


@cache
def checks() -> Checks:
    return load_checks()


def says(role: int, *blocks: Block | str, **fields: Any) -> Message:
    made = [Block(text=block) if isinstance(block, str) else block for block in blocks]
    return Message(role=role, blocks=made, **fields)


def opaque(value: Any, dialect: int = ANTHROPIC) -> Opaque:
    return Opaque(dialect=dialect, json=orjson.dumps(value))


def call_of(
    *messages: Message, limit: int = 0, stream: bool = False, dialect: int = OPENAI, **fields: Any
) -> Call:
    """Return a call; without messages one that says hi."""
    request = GenerateRequest(
        model="m", messages=messages or [says(USER, "hi")], dialect=dialect, **fields
    )
    target = Target("m", "claude", "claude-1", max_output_tokens=limit)
    return Call(with_named_fields(request), target, stream)


def body_of(
    call: Call, *, pass_stateful: bool = False, fetches_urls: bool = False, official: bool = True
) -> dict[str, Any]:
    """Return the body sent, after the SDK's own types have agreed to it.

    Where the test is about fields the SDK knows nothing of, `official` is False.
    """
    rules = {"pass_stateful": pass_stateful, "fetches_urls": fetches_urls}
    body = orjson.loads(build_request(call, OWN.head(call, []), **rules, official=official))
    if official:
        assert checks().messages(body) is None
    return body


def count_body_of(call: Call) -> dict[str, Any]:
    body = orjson.loads(
        build_count(
            call, OWN.count_head(call, []), pass_stateful=False, fetches_urls=False, official=True
        )
    )
    assert checks().count_tokens(body) is None
    return body


def refusal_of(call: Call, **rules: bool) -> tuple[str, str]:
    """Return the reason and path with which a call is refused; its message names the path too."""
    with pytest.raises(GatewayError) as raised:
        body_of(call, **rules)
    assert raised.value.message.startswith(raised.value.param)
    return Reason.Name(raised.value.reason).removeprefix("REASON_"), path_of(
        call.request, raised.value.param
    )


def messages_of(*messages: Any, **fields: Any) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = body_of(call_of(*messages, **fields))["messages"]
    return sent


def content_of(*blocks: Block, role: int = USER, **fields: Any) -> list[dict[str, Any]]:
    """Return the content sent for one message."""
    first = [says(USER, "hi")] if role == ASSISTANT else []
    return messages_of(*first, says(role, *blocks), **fields)[-1]["content"]
