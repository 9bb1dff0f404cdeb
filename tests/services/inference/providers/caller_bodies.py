"""Bodies of callers of both dialects, as strategies and as agents send them."""

import json
from typing import Any

import pytest
from hypothesis import strategies as st

from facade.dialects.anthropic import parse_messages
from facade.dialects.openai import parse_chat
from facade.dialects.responses import parse_request as parse_response
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import GatewayError
from services.common.messages.lazy_request import LazyRequest
from services.inference.providers.base import Target
from tests.lazy_requests import lazy_of

Json = dict[str, Any]

TARGET = Target("m", "p", "up")
TEXTS = st.sampled_from(["a", "b\n", " ", "", "é"])
NUMBERS = st.sampled_from([0, 1.5, 2**70, float("inf"), None, "null"])
SCHEMAS = st.fixed_dictionaries(
    {"type": st.just("object")},
    optional={"default": NUMBERS, "properties": st.just({"x": {"type": ["string", "null"]}})},
)


def some(values: st.SearchStrategy[Any], usual: Any) -> st.SearchStrategy[Any]:
    """Return a strategy of values that are mostly the usual one."""
    return st.one_of(*[st.just(usual)] * 3, values)


def chat_text(*extra: Json) -> st.SearchStrategy[Any]:
    part = st.fixed_dictionaries(
        {"type": st.just("text"), "text": TEXTS}, optional={"further": st.just(1)}
    )
    return st.one_of(
        TEXTS, st.lists(st.one_of(part, *map(st.just, extra)), max_size=3), st.just("words")
    )


CHAT_CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.sampled_from(["call_1", "2"]),
            "type": some(st.just("custom"), "function"),
            "function": st.fixed_dictionaries(
                {"name": st.just("f"), "arguments": st.sampled_from(["{}", "", "no JSON"])},
                optional={"further": st.just(None)},
            ),
        },
        optional={"index": st.just(0)},
    ),
    max_size=2,
)
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
CHAT_MESSAGES = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {
                "role": st.sampled_from(["user", "system", "developer"]),
                "content": chat_text(IMAGE),
            },
            optional={"name": st.just("n")},
        ),
        st.fixed_dictionaries(
            {"role": st.just("assistant"), "content": st.one_of(st.none(), chat_text())},
            optional={
                "tool_calls": CHAT_CALLS,
                "refusal": st.sampled_from([None, "no"]),
                "reasoning_content": st.sampled_from([None, "hm"]),
                "audio": st.just(None),
            },
        ),
        st.fixed_dictionaries(
            {"role": st.just("tool"), "content": chat_text(), "tool_call_id": st.just("call_1")},
            optional={"name": st.just("f")},
        ),
        st.just({"role": "user", "content": "Hi"}),
    ),
    min_size=1,
    max_size=4,
)
CHAT_TOOLS = st.lists(
    st.fixed_dictionaries(
        {
            "type": some(st.just("web_search"), "function"),
            "function": st.fixed_dictionaries(
                {"name": st.sampled_from(["f", "g", "h", "no name"])},
                optional={
                    "parameters": SCHEMAS,
                    "description": st.sampled_from(["", None, "does"]),
                    "strict": st.sampled_from([True, None]),
                },
            ),
        },
        optional={"cache_control": st.just({"type": "ephemeral"})},
    ),
    max_size=2,
)


def dumped(value: Any) -> bytes:
    # Of numbers of any size, as callers write them.
    return json.dumps(value).encode()


def both(parse: Any, body: Json) -> tuple[GenerateRequest, LazyRequest | None] | None:
    """Read a body at once and lazily; give nothing for one that is refused, in either way."""
    raw = dumped(body)
    try:
        whole = parse(raw, False)
    except GatewayError as error:
        with pytest.raises(GatewayError) as refused:
            parse(raw, True)
        assert (refused.value.param, refused.value.message) == (error.param, error.message)
        return None
    return whole.request, lazy_of(parse(raw, True))


def chat(raw: bytes, lazily: bool) -> Any:
    return parse_chat(raw, lazily=lazily)


def messages(raw: bytes, lazily: bool) -> Any:
    return parse_messages(raw, betas=[], coding=False, lazily=lazily)


def response(raw: bytes, lazily: bool) -> Any:
    return parse_response(raw, lazily=lazily)


HELLO = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}
CALLED = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}
AGENTS_RESPONSE = {
    "instructions": "Be brief.",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "Look"}]},
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "I do", "annotations": []}],
        },
        {"type": "function_call", "id": "fc_1", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "function_call", "id": "fc_2", "call_id": "2", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "x"},
        {"type": "function_call_output", "call_id": "2", "output": ""},
    ],
    "tools": [FUNCTION],
    "max_output_tokens": 5,
    "store": False,
}
BILLING = "x-anthropic-billing-header"
AGENTS_CHAT = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Look"}]},
        {"role": "assistant", "content": None, "tool_calls": [CALLED, {**CALLED, "id": "2"}]},
        {"role": "tool", "tool_call_id": "1", "content": "x"},
        {"role": "tool", "tool_call_id": "2", "content": ""},
        {"role": "assistant", "content": "So.", "refusal": None},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    ],
    "tools": [TOOL],
    "tool_choice": "auto",
}


CHATS = st.fixed_dictionaries(
    {"messages": CHAT_MESSAGES},
    optional={
        "tools": CHAT_TOOLS,
        "tool_choice": st.sampled_from(["auto", "required"]),
        "store": st.just(False),
        "max_tokens": st.just(5),
        "max_completion_tokens": st.sampled_from([5, None]),
        "temperature": st.sampled_from([0, 0.5, None]),
        "top_p": st.just(1),
        "n": st.sampled_from([1, 2]),
        "seed": st.just(7),
        "presence_penalty": st.just(-1),
        "frequency_penalty": st.just(0.5),
        "stop": st.sampled_from(["a", ["a", "b"]]),
        "user": st.just("u"),
        "reasoning_effort": st.just("low"),
        "stream": st.booleans(),
        "further": st.just(1),
    },
)
MARK = {"type": "ephemeral"}
TEXT_BLOCKS = st.lists(
    st.fixed_dictionaries(
        {"type": st.just("text"), "text": TEXTS},
        optional={"cache_control": st.sampled_from([None, MARK]), "citations": st.just(None)},
    ),
    max_size=2,
)
OF_USER = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("tool_result"), "tool_use_id": st.just("t1")},
        optional={
            "content": st.one_of(TEXTS, TEXT_BLOCKS, st.none()),
            "is_error": st.sampled_from([True, False, None]),
            "cache_control": st.sampled_from([None, MARK]),
        },
    ),
    st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}),
    st.just({"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}),
    st.just({"type": "search_result", "title": "t"}),
)
OF_ASSISTANT = st.one_of(
    st.fixed_dictionaries(
        {
            "type": st.just("tool_use"),
            "id": st.just("t1"),
            "name": st.just("f"),
            "input": st.dictionaries(st.just("x"), NUMBERS),
        },
        optional={"caller": st.just({"type": "direct"})},
    ),
    st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}),
    st.fixed_dictionaries(
        {
            "type": st.just("thinking"),
            "thinking": TEXTS,
            "signature": st.sampled_from(["c2ln", "gw1.k.x.y", "", None, "a-b"]),
        }
    ),
)
MESSAGES = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {"role": st.just("user"), "content": st.lists(OF_USER, max_size=3)},
            optional={"further": st.just(1)},
        ),
        st.fixed_dictionaries(
            {"role": st.just("assistant"), "content": st.lists(OF_ASSISTANT, max_size=3)}
        ),
        st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "assistant", "system"]), "content": TEXTS}
        ),
    ),
    min_size=1,
    max_size=4,
)
TOOLS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["f", "g"]), "input_schema": SCHEMAS},
        optional={
            "type": st.sampled_from(["custom", None]),
            "description": st.sampled_from(["", None, "does"]),
            "strict": st.sampled_from([True, False, None]),
            "cache_control": st.sampled_from([None, MARK]),
            "defer_loading": st.just(True),
            "examples": st.just([{"type": "file", "file_id": "x"}]),
        },
    ),
    max_size=2,
)
AGENTS_MESSAGES = {
    "system": [{"type": "text", "text": "Be brief.", "cache_control": MARK}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Look"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"x": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "x", "is_error": False},
                {"type": "text", "text": "Go on", "cache_control": MARK},
            ],
        },
    ],
    "tools": [{"name": "f", "description": "does", "input_schema": {"type": "object"}}],
}


MESSAGE_BODIES = st.fixed_dictionaries(
    {"messages": MESSAGES},
    optional={
        "tools": TOOLS,
        "system": st.one_of(TEXTS, TEXT_BLOCKS),
        "tool_choice": st.just({"type": "auto"}),
        "temperature": st.sampled_from([0, 0.5, None]),
        "top_p": st.just(1),
        "top_k": st.just(3),
        "stop_sequences": st.just(["a"]),
        "metadata": st.just({"user_id": "u"}),
        "stream": st.booleans(),
        "further": st.just(1),
        "thinking_block_strategy": st.sampled_from(["preserve", "discard"]),
    },
)
