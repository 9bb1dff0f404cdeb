"""Calls to the adapter of responses, and the bodies that it sends, held against the SDK's types."""

from functools import cache
from typing import Any

import orjson
import pytest

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Dialect,
    Message,
    Opaque,
    Role,
    Thinking,
)
from gateway.errors.v1.errors_pb2 import Reason
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import GatewayError
from services.inference.providers.base import AnswerForm, Call, Target
from services.inference.providers.openai.fields import Server
from services.inference.providers.openai_responses.request import build_request
from tests.upstream.checks import Checks, load_checks

RESPONSES = conversation_pb2.DIALECT_RESPONSES
USER = conversation_pb2.ROLE_USER
ASSISTANT = conversation_pb2.ROLE_ASSISTANT
SYSTEM = conversation_pb2.ROLE_SYSTEM
DEVELOPER = conversation_pb2.ROLE_DEVELOPER

Json = dict[str, Any]


@cache
def _checks() -> Checks:
    return load_checks()


def opaque(value: Any, dialect: Dialect.ValueType = RESPONSES) -> Opaque:
    return Opaque(dialect=dialect, json=orjson.dumps(value))


def says(role: Role.ValueType, *blocks: Block | str, **fields: Any) -> Message:
    made = [Block(text=block) if isinstance(block, str) else block for block in blocks]
    return Message(role=role, blocks=made, **fields)


def thought(item: Json) -> Block:
    """Return the block of a reasoning item, as a request has it."""
    text = "\n\n".join(part["text"] for part in item.get("summary", ()))
    thinking = Thinking(text=text, signature=item.get("encrypted_content", ""))
    return Block(thinking=thinking, extra=opaque(item))


def call_of(
    *messages: Message,
    stream: bool = False,
    refused_fields: frozenset[str] = frozenset(),
    thinks: bool | None = False,
    accepts: AnswerForm = AnswerForm.EVENTS,
    dialect: Dialect.ValueType = RESPONSES,
    **fields: Any,
) -> Call:
    """Return a call; without messages one that says hi."""
    request = GenerateRequest(
        model="m",
        messages=messages or [says(USER, "hi")],
        dialect=dialect,
        **fields,
    )
    target = Target("m", "acme", "gpt-1", thinks=thinks)
    return Call(request, target, stream, [], accepts, refused_fields)


def body_of(
    call: Call,
    *,
    newest: bool = True,
    fetches_urls: bool = False,
    pass_stateful: bool = False,
    known: bool = True,
) -> Json:
    """Return the body sent, after the SDK's own types have agreed to it.

    Where the test is about fields the SDK knows nothing of, `known` is False.
    """
    server = Server("acme", newest, fetches_urls, pass_stateful)
    body: Json = orjson.loads(build_request(call, server))
    if known:
        assert _checks().responses(body) is None
    return body


def input_of(*messages: Message, **rules: Any) -> list[Json]:
    """Return the items that a conversation becomes."""
    items: list[Json] = body_of(call_of(*messages), **rules)["input"]
    return items


def refusal_of(call: Call, **rules: bool) -> tuple[str, str]:
    """Return the reason and path with which a call is refused; its message names the path too."""
    with pytest.raises(GatewayError) as raised:
        body_of(call, **rules)
    assert raised.value.message.startswith(f"{raised.value.param}: ")
    return Reason.Name(raised.value.reason).removeprefix("REASON_"), raised.value.param
