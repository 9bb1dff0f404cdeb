"""Schemas that are small and whose examples are not, sent to the sandbox's models."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.attacks.observer import Observer
from tests.attacks.raw_sockets import collected_sockets, connect
from tests.attacks.test_bodies import CHAT, MESSAGES, message_of, post
from tests.e2e.gateway import Gateway

RESPONSES = "/beta/v1/responses"
LEAVING = 8
SAYS = "The sandbox cannot fill the schema"

SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "all of itself": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
    "4 GB": {
        **{"type": "array", "minItems": 60},
        "items": {
            **{"type": "array", "minItems": 60},
            "items": {"type": "string", "minLength": 100_000},
        },
    },
    "two enums": {"allOf": [{"enum": [*range(n, n + 90_000)]} for n in (0, 89_999)]},
    "branches": {
        **{"type": "integer", "maximum": 2},
        "allOf": [{"anyOf": [{"minimum": 3}, {"minimum": 4}]} for _ in range(60)],
    },
    "a long array": {"type": "array", "minItems": 10**9, "items": {"maxLength": 0}},
}
ASKED = [{"role": "user", "content": "Use the tool"}]


def chat_format(schema: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    described = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    return CHAT, {"messages": ASKED, "response_format": described, "n": 16}


def chat_tool(schema: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    tool = {"type": "function", "function": {"name": "tool", "parameters": schema}}
    return CHAT, {"messages": ASKED, "tools": [tool]}


def responses_format(schema: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    described = {"type": "json_schema", "name": "a", "schema": schema}
    return RESPONSES, {"input": "Hello", "text": {"format": described}}


def responses_tool(schema: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    tool = {"type": "function", "name": "tool", "parameters": schema}
    return RESPONSES, {"input": "Use the tool", "tools": [tool]}


def messages_format(schema: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    described = {"format": {"type": "json_schema", "schema": schema}}
    return MESSAGES, {"messages": ASKED, "max_tokens": 100, "output_config": described}


def messages_tool(schema: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    tool = {"name": "tool", "input_schema": schema}
    return MESSAGES, {"messages": ASKED, "max_tokens": 100, "tools": [tool]}


PLACES = (
    *(chat_format, chat_tool, responses_format, responses_tool, messages_format, messages_tool),
)


@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
async def test_a_schema_without_a_small_example_is_harmless(
    target: Gateway, attacker_key: str, observer: Observer, schema: Mapping[str, Any]
) -> None:
    requests = [place(schema) for place in PLACES]
    bodies = [(path, json.dumps({"model": "sandbox/echo", **body})) for path, body in requests]
    async with observer.watch() as measured:
        with collected_sockets() as leaving:
            for path, body in bodies:
                head = (
                    f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                    f"Authorization: Bearer {attacker_key}\r\nContent-Length: {len(body)}\r\n\r\n"
                ).encode()
                for _ in range(LEAVING):
                    leaving.append(await connect(target, head + body.encode()))
        answered = await asyncio.gather(
            *(post(target, attacker_key, path, body.encode()) for path, body in bodies)
        )
    for (path, _), (status, answer) in zip(bodies, answered, strict=True):
        assert status == 400, answer[:1000]
        assert SAYS in message_of(path, answer)
    measured.assert_harmless()
