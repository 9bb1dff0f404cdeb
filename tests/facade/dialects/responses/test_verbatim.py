"""Conversations that go to a provider of the dialect as they came."""

import json
from base64 import b64decode
from typing import Any

import orjson
import pytest
from google.protobuf.json_format import MessageToDict

from facade.dialects.responses import parse_request
from services.common.errors import GatewayError
from services.common.messages.lazy_request import LazyRequest
from tests.facade.dialects.responses.bodies import FUNCTION, body, request
from tests.grid import each_row
from tests.lazy_requests import lazy_of
from tests.services.inference.providers.changes import GONE, Path, changed, spread

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
    return lazy_of(parse_request(body(**fields), lazily=True))


def sent(given: LazyRequest) -> dict[str, Any]:
    return {name: orjson.loads(json) for name, json in given.verbatim.items()}


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
    lazy_request = lazy(**fields)
    assert lazy_request is not None and lazy_request.has_whole_body
    names = ("input", "instructions", "tools")
    assert sent(lazy_request) == {
        name: value for name, value in {"input": "hello", **fields}.items() if name in names
    }
    assert lazy_request.complete() == request(**fields)


def test_settings_go_with_them_where_they_are_plain() -> None:
    plain = {"max_output_tokens": 3, "temperature": 0.5, "metadata": {"k": "v"}}
    lazy_request = lazy(**plain)
    assert lazy_request is not None and lazy_request.has_whole_body
    assert sent(lazy_request) == {"input": "hello", **plain}
    assert lazy_request.complete() == request(**plain)
    other = {"reasoning": {"effort": "low"}, "newest": 1, "tools": [FUNCTION]}
    lazy_request = lazy(**other)
    assert lazy_request is not None and not lazy_request.has_whole_body
    assert lazy_request.request.thinking.effort == "low"
    assert sent(lazy_request) == {"input": "hello", "tools": [FUNCTION]}
    assert lazy_request.complete() == request(**other)


@each_row(
    "fields",
    [
        {"input": [USER, SAID]},
        {"input": [{"role": "user", "content": ""}, USER]},
        {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]},
        {"input": [{**THOUGHT, "encrypted_content": "gw1.a.b.c"}, USER]},
        {"input": [{**THOUGHT, "encrypted_content": None}, USER]},
        {"input": [{**CALL, "arguments": ""}, OUTPUT]},
        {"input": [{**CALL, "newest": 1}, OUTPUT]},
        {"input": [{**CALL, "output": "b"}, OUTPUT]},
        {"input": [{**USER, "call_id": "c"}]},
        {"input": [{"type": "shell_call"}, USER]},
        {"input": [{"id": "msg_1"}, USER]},
        {"tools": [{"type": "web_search"}]},
        {"previous_response_id": "r"},
        {"conversation": "c"},
        {"memory_id": "m"},
        {"multimodal": {}},
        {"prompt": {"id": "p"}},
    ],
)
def test_others_are_translated(fields: dict[str, Any]) -> None:
    assert lazy(**fields) is None


def test_large_numbers_beside_it_stay_what_they_are() -> None:
    schema = {"type": "object", "maxProperties": 2**70}
    form = {"format": {"type": "json_schema", "name": "n", "schema": schema}}
    parsed = parse_request(body(newest=2**70, text=form), lazily=True)
    lazy = lazy_of(parsed)
    assert lazy is not None and not lazy.has_whole_body
    assert json.loads(lazy.complete().extra.json)["newest"] == 2**70
    echoed = json.loads(b"{%b}" % parsed.state.echo.json)
    assert echoed["text"]["format"]["schema"] == schema


def test_nulls_and_labels_of_answers_say_nothing() -> None:
    labels = {"id": "i", "status": "completed"}
    lazy_request = lazy(input=[{**USER, "id": None, "phase": None}, {**CALL, **labels}, OUTPUT])
    assert lazy_request is not None
    assert sent(lazy_request)["input"] == [USER, {**CALL, **labels}, OUTPUT]


def test_the_last_of_twin_members_is_what_counts() -> None:
    twins = b'{"role":"user","content":[{"type":"input_text","text":"a","text":"b"}],"role":"user"}'
    lazy = lazy_of(parse_request(b'{"model":"m","input":[%b]}' % twins, lazily=True))
    assert lazy is not None
    assert sent(lazy)["input"] == [{**USER, "content": [{"type": "input_text", "text": "b"}]}]


PLAIN = {
    "model": "m",
    "instructions": "i",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "c"}]},
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "s"}],
            "content": [],
            "encrypted_content": "gAAAAB",
        },
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
        CALL,
        OUTPUT,
        {"type": "custom_tool_call", "call_id": "d", "name": "n", "input": ""},
        {"type": "custom_tool_call_output", "call_id": "d", "output": "e"},
    ],
    "tools": [
        {**FUNCTION, "description": "d", "strict": True},
        {"type": "custom", "name": "n"},
        {"type": "mcp"},
    ],
}
OTHERS = (GONE, None, True, -1, 0.5, "", "x", "assistant", [], [1], [{}], {}, {"type": "message"})


def parsed(given: dict[str, Any], *, lazily: bool) -> Any:
    """Return the canonical request, or why a body is refused."""
    try:
        parsed = parse_request(orjson.dumps(given), lazily=lazily)
    except GatewayError as error:
        return error.message
    lazy = lazy_of(parsed)
    request = parsed.request if lazy is None else lazy.complete()
    return in_order(MessageToDict(request)), parsed.stream


def in_order(value: Any) -> Any:
    """Return fields without a name as values: the order of their members says nothing."""
    if isinstance(value, dict):
        return {
            name: orjson.loads(b64decode(one)) if name == "json" else in_order(one)
            for name, one in value.items()
        }
    return [in_order(one) for one in value] if isinstance(value, list) else value


@each_row("place", spread(PLAIN))
def test_a_look_accepts_what_validation_does(place: Path) -> None:
    assert lazy_of(parse_request(orjson.dumps(PLAIN), lazily=True)) is not None
    for value in OTHERS:
        given = changed(PLAIN, {place: value})
        assert parsed(given, lazily=True) == parsed(given, lazily=False)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"stream_options": {"include_obfuscation": False}}, "stream_options"),
        ({"background": True, "store": False}, "background"),
    ],
)
def test_fields_that_do_not_fit_are_refused(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(GatewayError) as refused:
        parse_request(orjson.dumps({"model": "m", "input": "a"} | fields), lazily=True)
    assert str(refused.value).startswith(f"{named}: ")


def test_requests_of_the_same_settings_have_their_own_tools() -> None:
    tools = [[], [{"type": "function", "name": "f", "parameters": {}, "strict": False}]]
    for given in (*tools, *tools):
        sent = {"model": "m", "input": "a", "store": False} | ({"tools": given} if given else {})
        echo = parse_request(orjson.dumps(sent), lazily=True).state.echo
        repeated = orjson.loads(b"{%b}" % echo.json)["tools"]
        assert [one["name"] for one in repeated] == [one["name"] for one in given]
