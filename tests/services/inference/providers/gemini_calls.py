"""Calls to Gemini's adapter, and what it makes of them, held against the sandbox's rules."""

from typing import Any

import orjson
import pytest

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Media, Message, Opaque, ToolResult
from gateway.errors.v1.errors_pb2 import Reason
from gateway.inference.v1.inference_pb2 import GenerateRequest, Tool
from services.common.errors import GatewayError
from services.inference.providers.base import Call, Target
from services.inference.providers.gemini.request import build_request
from tests.services.inference.providers.caller_paths import path_of, with_named_fields
from tests.upstream import gemini_rules

OPENAI = conversation_pb2.DIALECT_OPENAI
ANTHROPIC = conversation_pb2.DIALECT_ANTHROPIC
NONE = conversation_pb2.DIALECT_UNSPECIFIED
USER = conversation_pb2.ROLE_USER
ASSISTANT = conversation_pb2.ROLE_ASSISTANT
SYSTEM = conversation_pb2.ROLE_SYSTEM
DEVELOPER = conversation_pb2.ROLE_DEVELOPER
SCHEMA = b'{"type":"object","properties":{"city":{"type":"string"}}}'


def says(role: int, *blocks: Block | str, **fields: Any) -> Message:
    made = [Block(text=block) if isinstance(block, str) else block for block in blocks]
    return Message(role=role, blocks=made, **fields)


def opaque(value: Any, dialect: int = OPENAI) -> Opaque:
    return Opaque(dialect=dialect, json=orjson.dumps(value))


def called(id: str, name: str = "f", input: str = "{}", **fields: Any) -> Block:
    block = Block(**fields)
    block.tool_use.id, block.tool_use.name, block.tool_use.input = id, name, input
    return block


def result(id: str, *blocks: Block | str, is_error: bool = False) -> Block:
    made = [Block(text=block) if isinstance(block, str) else block for block in blocks]
    return Block(tool_result=ToolResult(tool_use_id=id, blocks=made, is_error=is_error))


def medium(kind: str, **fields: Any) -> Block:
    named = conversation_pb2.MediaKind.Value(f"MEDIA_KIND_{kind.upper()}")
    return Block(media=Media(kind=named, **fields))


def tool(name: str = "f", **fields: Any) -> Tool:
    return Tool(name=name, **{"input_schema": SCHEMA, **fields})


def call_of(
    *messages: Message,
    model: str = "gemini-3-flash-preview",
    dialect: int = OPENAI,
    refused_fields: tuple[str, ...] = (),
    efforts: tuple[str, ...] = (),
    **fields: Any,
) -> Call:
    """Return a call; without messages one that says hi."""
    request = GenerateRequest(
        model="m", messages=messages or [says(USER, "hi")], dialect=dialect, **fields
    )
    target = Target("m", "google", model, efforts=efforts)
    return Call(with_named_fields(request), target, False, refused_fields=frozenset(refused_fields))


def body_of(call: Call, *, pass_stateful: bool = False, fetches_urls: bool = False) -> Any:
    """Return the body sent, after the sandbox's rules have agreed to it."""
    rules = {"pass_stateful": pass_stateful, "fetches_urls": fetches_urls}
    body = orjson.loads(build_request(call, **rules))
    assert gemini_rules.generate_problem(_without_signatures(body)) is None
    return body


def contents_of(*messages: Message, **rules: Any) -> Any:
    """Return the contents that a conversation becomes."""
    return body_of(call_of(*messages), **rules)["contents"]


def config_of(call: Call) -> Any:
    """Return the `generationConfig` of a call, {} for none."""
    return body_of(call).get("generationConfig", {})


def refusal_of(call: Call, **rules: bool) -> tuple[str, str]:
    """Return the reason and path with which a call is refused; its message names the path."""
    with pytest.raises(GatewayError) as raised:
        body_of(call, **rules)
    assert raised.value.message.startswith(f"{raised.value.param}: ")
    return Reason.Name(raised.value.reason).removeprefix("REASON_"), path_of(
        call.request, raised.value.param
    )


def _without_signatures(body: Any) -> Any:
    """Return a body whose signatures the sandbox cannot doubt."""
    copy = orjson.loads(orjson.dumps(body))
    for content in copy["contents"]:
        for part in content["parts"]:
            if "thoughtSignature" in part:
                part["thoughtSignature"] = "skip_thought_signature_validator"
    return copy
