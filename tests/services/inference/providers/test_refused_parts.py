"""Parts that a model has refused are left out, and reported in its caller's dialect."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from gateway.conversation.v1.conversation_pb2 import Block, ToolResult, ToolUse
from gateway.inference.v1.inference_pb2 import ThinkingConfig, Tool
from services.inference.facts.catalogue import server_facts
from services.inference.providers.base import Call
from services.inference.providers.pruning import without_refused
from tests.services.inference.providers import anthropic_calls, openai_calls
from tests.services.inference.providers.caller_paths import dropped_of
from tests.services.inference.providers.openai_calls import (
    ANTHROPIC,
    ASSISTANT,
    NONE,
    OPENAI,
    USER,
    body_of,
    call_of,
    opaque,
    says,
)

GOOGLE = "https://generativelanguage.googleapis.com/v1beta/openai"


def without(call: Call, *names: str) -> Call:
    return replace(call, refused_fields=frozenset(names))


@pytest.mark.parametrize(
    ("dialect", "told"),
    [
        (OPENAI, {"user", "reasoning_effort"}),
        (ANTHROPIC, {"metadata.user_id", "output_config.effort"}),
        (NONE, {"end_user", "thinking.effort"}),
    ],
)
def test_fields_go_by_the_names_that_the_caller_has_for_them(dialect: Any, told: set[str]) -> None:
    thinking = ThinkingConfig(effort="high")
    call = call_of(dialect=dialect, end_user="ada", thinking=thinking)
    call = without(call, "user", "reasoning_effort")
    body = body_of(call)
    assert "user" not in body and "reasoning_effort" not in body
    assert set(dropped_of(call)) == told


def test_a_dropped_end_user_is_reported_as_user() -> None:
    call = without(anthropic_calls.call_of(end_user="ada"), "metadata")
    assert "metadata" not in anthropic_calls.body_of(call)
    assert dropped_of(call) == ["user"]


def test_marks_of_tools_for_a_cache() -> None:
    call = without(call_of(tools=[_marked()]), "cache_control")
    assert "cache_control" not in body_of(call)["tools"][0]
    assert dropped_of(call) == ["tools[].cache_control"]


def test_a_mark_that_no_field_holds_is_reported() -> None:
    mark = {"type": "ephemeral"}
    bare = Block(text="a", cache_control=orjson.dumps(mark))
    held = opaque({"cache_control": mark})
    held.covered_paths.append("cache_control")
    of_part = Block(text="a", cache_control=orjson.dumps(mark), extra=held)
    reported = []
    for message in (says(USER, bare), says(USER, of_part), says(USER, bare, extra=held)):
        call = call_of(message)
        reported.append((str(body_of(call, known=False)).count("cache_control"), dropped_of(call)))
    assert reported == [(0, ["messages[].content[].cache_control"]), (1, []), (1, [])]


def _marked() -> Tool:
    return Tool(name="f", extra=opaque({"cache_control": {"type": "ephemeral"}}))


def test_fields_of_messages_of_anthropic_s_own_callers() -> None:
    extra = anthropic_calls.opaque({"made_up": 1, "kept": 2})
    message = anthropic_calls.says(USER, "hi", extra=extra)
    call = anthropic_calls.call_of(message, dialect=ANTHROPIC)
    body = anthropic_calls.body_of(without(call, "messages[].made_up"), official=False)
    assert body["messages"] == [{"role": "user", "content": "hi", "kept": 2}]


def test_a_refused_field_of_messages_stays_in_the_request() -> None:
    call = without(call_of(extra=opaque({"made_up": 1})), "messages[].made_up")
    body = without_refused(call, orjson.dumps(body_of(call, known=False)))
    assert orjson.loads(body)["made_up"] == 1
    assert dropped_of(call) == []


def test_fields_of_parts_of_anthropic_s_own_callers() -> None:
    block = Block(text="hi", extra=anthropic_calls.opaque({"made_up": 1, "kept": 2}))
    message = anthropic_calls.says(USER, block)
    call = without(
        anthropic_calls.call_of(message, dialect=ANTHROPIC), "messages[].content[].made_up"
    )
    body = anthropic_calls.body_of(call, official=False)
    assert body["messages"][0]["content"] == [{"type": "text", "text": "hi", "kept": 2}]
    assert dropped_of(call) == ["messages[].content[].made_up"]


@pytest.mark.parametrize("known", [False, True])
def test_calls_that_another_model_made(known: bool) -> None:
    uses = [Block(tool_use=ToolUse(id=one, name="f", input="{}")) for one in ("c1", "c2")]
    results = [Block(tool_result=ToolResult(tool_use_id=one)) for one in ("c1", "c2")]
    call = call_of(says(USER, "a"), says(ASSISTANT, *uses), says(USER, *results))
    if known:
        refuses = server_facts("openai", GOOGLE).refuses
        call = replace(call, refused_fields=refuses)
    else:
        call = without(call, "unsigned_calls")
    body = openai_calls.body_of(call, newest=False, known=False)
    first, second = body["messages"][1]["tool_calls"]
    signature = first["extra_content"]["google"]["thought_signature"]
    assert signature == "skip_thought_signature_validator"
    assert "extra_content" not in second


def test_a_bound_on_a_part_is_no_bound_on_a_field() -> None:
    call = without(call_of(), "messages[].name<=4")
    sent = {"name": "long enough", "messages": [{"role": "user", "name": "also long"}]}
    body = orjson.loads(without_refused(call, orjson.dumps(sent)))
    assert body["name"] == "long enough"
    assert body["messages"][0]["name"] == "als…"
    absent = {"name": "long enough"}
    assert orjson.loads(without_refused(call, orjson.dumps(absent))) == absent
