"""Calls to OpenAI's adapter, and what it makes of them, held against the official SDK."""

from dataclasses import replace
from functools import cache
from typing import Any

import orjson
import pytest

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Dialect,
    Media,
    Message,
    Opaque,
    Role,
)
from gateway.errors.v1.errors_pb2 import Reason
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import GatewayError
from services.inference.facts.catalogue import server_facts
from services.inference.learned.refusals import all_refused
from services.inference.providers.base import Call, Target
from services.inference.providers.openai.fields import Server
from services.inference.providers.openai.request import build_request
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
def _checks() -> Checks:
    return load_checks()


def says(role: Role.ValueType, *blocks: Block | str, **fields: Any) -> Message:
    made = [Block(text=block) if isinstance(block, str) else block for block in blocks]
    return Message(role=role, blocks=made, **fields)


def opaque(value: Any, dialect: Dialect.ValueType = OPENAI) -> Opaque:
    return Opaque(dialect=dialect, json=orjson.dumps(value))


def medium(kind: str, **fields: Any) -> Block:
    named = conversation_pb2.MediaKind.Value(f"MEDIA_KIND_{kind.upper()}")
    return Block(media=Media(kind=named, **fields))


def call_of(
    *messages: Message, stream: bool = False, dialect: Dialect.ValueType = OPENAI, **fields: Any
) -> Call:
    """Return a call; without messages one that says hi."""
    request = GenerateRequest(
        model="m", messages=messages or [says(USER, "hi")], dialect=dialect, **fields
    )
    return Call(with_named_fields(request), Target("m", "acme", "gpt-1"), stream)


def body_of(
    call: Call,
    *,
    newest: bool = True,
    fetches_urls: bool = False,
    pass_stateful: bool = False,
    known: bool = True,
) -> dict[str, Any]:
    """Return the body sent, after the SDK's own types have agreed to it.

    Where the test is about fields the SDK knows nothing of, `known` is False.
    """
    if newest:
        refuses = server_facts("openai", "https://api.openai.com/v1").refuses
        call = replace(call, refused_fields=all_refused(refuses, call.refused_fields))
    server = Server("acme", newest, fetches_urls, pass_stateful)
    body: dict[str, Any] = orjson.loads(build_request(call, server))
    if known:
        assert _checks().chat(body) is None
    return body


def sent(
    *messages: Message, dialect: Dialect.ValueType = OPENAI, **rules: Any
) -> list[dict[str, Any]]:
    """Return the messages that a conversation becomes."""
    written: list[dict[str, Any]] = body_of(call_of(*messages, dialect=dialect), **rules)[
        "messages"
    ]
    return written


def refusal_of(call: Call, **rules: bool) -> tuple[str, str]:
    """Return the reason and path with which a call is refused; its message names the path too."""
    with pytest.raises(GatewayError) as raised:
        body_of(call, **rules)
    assert raised.value.message.startswith(f"{raised.value.param}: ")
    return Reason.Name(raised.value.reason).removeprefix("REASON_"), path_of(
        call.request, raised.value.param
    )
