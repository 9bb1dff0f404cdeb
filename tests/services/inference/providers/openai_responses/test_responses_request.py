"""The body of a request to `/responses`, without its items."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.conversation.v1.conversation_pb2 import Block
from gateway.inference.v1.inference_pb2 import OutputFormat, ThinkingConfig, Tool, ToolChoice
from services.common.messages.lazy_request import LazyRequest
from services.inference.learned.refusals import ENCRYPTED_REASONING
from services.inference.providers.base import Call
from tests.services.inference.providers.openai_responses.responses_calls import (
    SYSTEM,
    USER,
    Json,
    body_of,
    call_of,
    opaque,
    refusal_of,
    says,
)

ENCRYPTED = "reasoning.encrypted_content"
F = Tool(name="f", description="d", input_schema=b'{"type": "object"}', strict=True)


def with_written(call: Call, fields: dict[str, Any], *, has_whole_body: bool = True) -> Call:
    """Return a call with what its caller wrote: a whole body, or the conversation alone."""
    lazy = LazyRequest(
        call.request,
        fields,
        size=1,
        requires_official_api=False,
        has_whole_body=has_whole_body,
    )
    return replace(call, lazy=lazy)


def test_sampling_and_limits_by_their_names() -> None:
    body = body_of(
        call_of(temperature=0.5, top_p=0.25, max_tokens=99, end_user="u", service_tier="flex")
    )
    assert body == {
        "model": "gpt-1",
        "input": [{"type": "message", "role": "user", "content": "hi"}],
        "temperature": 0.5,
        "top_p": 0.25,
        "max_output_tokens": 99,
        "user": "u",
        "service_tier": "flex",
        "store": False,
    }


def test_fields_without_a_canonical_name_go_as_they_came() -> None:
    extra = {"truncation": "auto", "metadata": {"a": "b"}, "brand_new": {"x": [1]}}
    body = body_of(call_of(extra=opaque({**extra, "store": True, "background": True})), known=False)
    assert body.items() >= extra.items()
    assert body["store"] is False
    assert "background" not in body


def test_options_of_a_stream_go_with_one() -> None:
    extra = opaque({"stream_options": {"include_obfuscation": False}})
    assert "stream_options" not in body_of(call_of(extra=extra))
    body = body_of(call_of(extra=extra, stream=True))
    assert body["stream_options"] == {"include_obfuscation": False}


def test_options_of_reasoning_and_text_are_joined() -> None:
    extra = {"reasoning": {"context": "auto"}, "text": {"verbosity": "low"}}
    thinking = ThinkingConfig(effort="high", extra=opaque({"summary": "auto"}))
    schema = OutputFormat(kind=OutputFormat.KIND_JSON_SCHEMA, schema=b'{"a": 1}', strict=False)
    body = body_of(call_of(extra=opaque(extra), thinking=thinking, output_format=schema))
    assert body["reasoning"] == {"context": "auto", "summary": "auto", "effort": "high"}
    assert body["text"] == {
        "verbosity": "low",
        "format": {"type": "json_schema", "name": "answer", "schema": {"a": 1}, "strict": False},
    }


def test_tools_and_choices() -> None:
    custom = {"type": "custom", "name": "run", "format": {"type": "text"}}
    tools = [F, Tool(name="run", opaque=True, extra=opaque(custom))]
    choice = ToolChoice(mode=ToolChoice.MODE_TOOL, name="f", disable_parallel_tool_use=True)
    body = body_of(call_of(tools=tools, tool_choice=choice))
    assert body["tools"] == [
        {
            "type": "function",
            "name": "f",
            "description": "d",
            "parameters": {"type": "object"},
            "strict": True,
        },
        custom,
    ]
    assert body["tool_choice"] == {"type": "function", "name": "f"}
    assert body["parallel_tool_calls"] is False
    forced = ToolChoice(mode=ToolChoice.MODE_TOOL, name="web_search")
    forced.extra.CopyFrom(opaque({"type": "web_search_preview"}))
    body = body_of(call_of(tools=tools, tool_choice=forced))
    assert body["tool_choice"] == {"type": "web_search_preview"}
    own = {"type": "custom", "name": "run"}
    body = body_of(call_of(tools=tools, tool_choice=ToolChoice(extra=opaque(own))))
    assert body["tool_choice"] == own


@pytest.mark.parametrize(
    ("thinks", "include", "sent"),
    [
        (True, None, [ENCRYPTED]),
        (None, ["web_search_call.results"], ["web_search_call.results", ENCRYPTED]),
        (True, [ENCRYPTED], [ENCRYPTED]),
        (True, [], []),
        (False, None, None),
        (False, [ENCRYPTED], [ENCRYPTED]),
    ],
)
def test_thoughts_are_asked_for_encrypted(
    thinks: bool | None, include: list[str] | None, sent: list[str] | None
) -> None:
    extra = {} if include is None else {"extra": opaque({"include": include})}
    assert body_of(call_of(thinks=thinks, **extra)).get("include") == sent
    written = {"input": "hi"} | ({} if include is None else {"include": include})
    as_it_is = with_written(call_of(thinks=thinks), written)
    assert body_of(as_it_is).get("include") == sent


def test_log_probabilities_are_a_thing_to_include() -> None:
    body = body_of(call_of(logprobs=True, top_logprobs=3))
    assert (body["include"], body["top_logprobs"]) == (["message.output_text.logprobs"], 3)


def test_a_plain_request_goes_as_its_caller_wrote_it() -> None:
    fields = {"input": [{"role": "user", "content": "hi"}], "temperature": 1, "store": True}
    call = with_written(call_of(stream=True), fields)
    assert body_of(call) == {"model": "gpt-1", **fields, "stream": True, "store": False}
    assert fields["store"] is True, "it is the caller's"
    assert body_of(call, pass_stateful=True)["store"] is True


def test_a_conversation_goes_as_its_caller_wrote_it() -> None:
    written = {"input": [{"role": "user", "content": "a"}], "instructions": "Be brief."}
    body = body_of(with_written(call_of(temperature=0.5), written, has_whole_body=False))
    assert body["input"] == written["input"]
    assert (body["instructions"], body["temperature"]) == ("Be brief.", 0.5)


@pytest.mark.parametrize("name", ["previous_response_id", "conversation", "prompt"])
def test_state_at_the_provider_may_not_be_named(name: str) -> None:
    value = {"id": "pmpt_1"} if name == "prompt" else "x_1"
    call = call_of(extra=opaque({name: value}))
    assert refusal_of(call) == ("INVALID_REQUEST", f"extra.{name}")
    assert body_of(call, pass_stateful=True)[name] == value


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "file_search", "vector_store_ids": ["vs_1"]},
        {"type": "code_interpreter", "container": "cntr_1"},
        {"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["file-1"]}},
    ],
)
def test_tools_may_not_name_what_is_kept_there(tool: Json) -> None:
    call = call_of(tools=[Tool(opaque=True, extra=opaque(tool))])
    reason, path = refusal_of(call)
    assert (reason, path.split(".")[0]) == ("INVALID_REQUEST", "tools[0]")
    assert body_of(call, pass_stateful=True)["tools"] == [tool]


def test_what_responses_have_nothing_for_is_named() -> None:
    call = call_of(seed=1, top_k=2, presence_penalty=0.5)
    assert body_of(call).keys() == {"model", "input", "store"}
    assert set(call.dropped) == {"seed", "top_k", "presence_penalty"}
    assert refusal_of(call_of(n=2)) == ("UNSUPPORTED", "n")


@pytest.mark.parametrize(
    ("refused_fields", "gone", "dropped"),
    [
        ("temperature", "temperature", "temperature"),
        ("reasoning", "reasoning", "thinking.effort"),
        ("reasoning_effort", "reasoning", "thinking.effort"),
        ("truncation", "truncation", "extra.truncation"),
        ("parallel_tool_calls", "parallel_tool_calls", "tool_choice.disable_parallel_tool_use"),
    ],
)
def test_refused_fields_are_left_out_and_named(
    refused_fields: str, gone: str, dropped: str
) -> None:
    call = call_of(
        temperature=0.5,
        thinking=ThinkingConfig(effort="low"),
        tools=[F],
        tool_choice=ToolChoice(mode=ToolChoice.MODE_AUTO, disable_parallel_tool_use=True),
        extra=opaque({"truncation": "auto", "text": {"verbosity": "low"}}),
        refused_fields=frozenset({refused_fields}),
    )
    body = body_of(call)
    assert gone not in body
    assert call.dropped == [dropped]
    assert {"model", "input", "tools", "text"} <= body.keys()


def test_refused_parts_of_a_field_leave_the_rest() -> None:
    include = [ENCRYPTED, "web_search_call.results"]
    call = call_of(
        thinks=None,
        refused_fields=frozenset({"verbosity", ENCRYPTED_REASONING}),
        extra=opaque({"text": {"verbosity": "low"}, "include": include}),
    )
    body = body_of(call)
    assert body["include"] == ["web_search_call.results"]
    assert "text" not in body
    assert set(call.dropped) == {"extra.text.verbosity", "extra.include"}


def test_marks_that_no_field_holds_are_reported() -> None:
    mark = b'{"type":"ephemeral"}'
    bare = Block(text="a", cache_control=mark)
    held = opaque({"prompt_cache_breakpoint": {"mode": "explicit"}})
    held.covered_paths.append("prompt_cache_breakpoint")
    options = opaque({"prompt_cache_options": {"ttl": "30m"}})
    options.covered_paths.append("prompt_cache_options.mode")
    calls = [
        call_of(says(USER, bare)),
        call_of(says(SYSTEM, bare), says(USER, "b")),
        call_of(says(USER, Block(text="a", cache_control=mark, extra=held))),
        call_of(cache_control=mark),
        call_of(cache_control=mark, extra=options),
    ]
    sent = [str(body_of(call, known=False)).count("prompt_cache") for call in calls]
    assert sent == [0, 0, 1, 0, 1]
    of_blocks = ["messages[].blocks[].cache_control"]
    assert [call.dropped for call in calls] == [of_blocks, of_blocks, [], ["cache_control"], []]
