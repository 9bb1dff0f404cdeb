"""Conversations that go to a provider of the dialect as they came."""

from typing import Any

import pytest

from facade.dialects.responses import parse_request
from services.common.lazy_request import LazyRequest
from tests.facade.dialects.responses.bodies import FUNCTION, body, request

SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "a", "annotations": []}],
}
THOUGHT = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAB", "id": "rs_1"}
CALL = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "b"}
USER = {"role": "user", "content": [{"type": "input_text", "text": "c"}]}


def lazy(**fields: Any) -> LazyRequest | None:
    return parse_request(body(**fields), lazily=True).lazy


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"instructions": "i", "store": False, "stream": True},
        {"input": [USER, THOUGHT, SAID, CALL, OUTPUT, USER], "tools": [FUNCTION]},
        {"tools": [{"type": "custom", "name": "n"}, {"type": "mcp"}]},
    ],
)
def test_plain_conversations_go_as_they_came(fields: dict[str, Any]) -> None:
    given = lazy(**fields)
    assert given is not None and given.is_whole
    names = ("input", "instructions", "tools")
    assert given.fields == {
        name: value for name, value in {"input": "hello", **fields}.items() if name in names
    }
    assert given.complete() == request(**fields)


def test_settings_go_with_them_where_they_are_plain() -> None:
    plain = {"max_output_tokens": 3, "temperature": 0.5, "metadata": {"k": "v"}}
    given = lazy(**plain)
    assert given is not None and given.is_whole
    assert given.fields == {"input": "hello", **plain}
    assert given.complete() == request(**plain)
    other = {"reasoning": {"effort": "low"}, "newest": 1, "tools": [FUNCTION]}
    given = lazy(**other)
    assert given is not None and not given.is_whole
    assert given.request.thinking.effort == "low"
    assert given.fields == {"input": "hello", "tools": [FUNCTION]}
    assert given.complete() == request(**other)


@pytest.mark.parametrize(
    "fields",
    [
        {"input": [USER, SAID]},
        {"input": [{"role": "user", "content": ""}, USER]},
        {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]},
        {"input": [{**THOUGHT, "encrypted_content": "gw1.a.b.c"}, USER]},
        {"input": [{**THOUGHT, "encrypted_content": None}, USER]},
        {"input": [{**CALL, "arguments": ""}, OUTPUT]},
        {"input": [{**CALL, "newest": 1}, OUTPUT]},
        {"input": [{"type": "shell_call"}, USER]},
        {"input": [{"id": "msg_1"}, USER]},
        {"tools": [{"type": "web_search"}]},
        {"previous_response_id": "r"},
        {"conversation": "c"},
        {"memory_id": "m"},
        {"multimodal": {}},
        {"prompt": {"id": "p"}},
        {"metadata": {"k": "v"}, "newest": 2**70},
    ],
)
def test_others_are_translated(fields: dict[str, Any]) -> None:
    assert lazy(**fields) is None
