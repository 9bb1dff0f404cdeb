"""A conversation that goes as its caller wrote it says what its translation would say."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from facade.dialects.anthropic import parse_messages
from facade.dialects.openai import parse_chat
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import GatewayError
from services.common.lazy_request import LazyRequest
from services.inference.providers.anthropic import AnthropicProvider
from services.inference.providers.anthropic.request import build_request as build_anthropic
from services.inference.providers.base import Call, Target
from services.inference.providers.openai.fields import Server
from services.inference.providers.openai.provider import OpenAIProvider
from services.inference.providers.openai.request import build_request as build_openai

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
    return whole.request, parse(raw, True).lazy


def chat(raw: bytes, lazily: bool) -> Any:
    return parse_chat(raw, lazily=lazily)


def messages(raw: bytes, lazily: bool) -> Any:
    return parse_messages(raw, betas=[], coding=False, lazily=lazily)


def call_of(lazy: LazyRequest, *, stream: bool) -> Call:
    """Return the call of a first attempt at a provider of the caller's own dialect."""
    if lazy.is_whole:
        return Call(lazy.request, TARGET, stream, body=lazy.fields)
    return Call(lazy.request, TARGET, stream, source=lazy.source)


def check_what_decides(lazy: GenerateRequest, whole: GenerateRequest) -> None:
    """Check that a request says before it is complete what plans and answers are made by."""
    for name in ("model", "dialect", "n", "max_tokens", "fallback", "betas", "thinking"):
        assert getattr(lazy, name) == getattr(whole, name), name


HELLO = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}
CALLED = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
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


@given(
    st.fixed_dictionaries(
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
    ),
    st.booleans(),
)
@example(AGENTS_CHAT, True)
@example({**AGENTS_CHAT, "stream": True, "stream_options": {"include_usage": False}}, True)
@example({**AGENTS_CHAT, "tools": [], "n": 1}, True)
@settings(max_examples=400, deadline=None)
def test_a_chat_goes_as_its_translation_would(body: Json, newest: bool) -> None:
    read = both(chat, {"model": "m", **body})
    if read is None or read[1] is None:
        return
    whole, lazy = read
    provider = OpenAIProvider("p", None, pass_stateful=False, newest=newest, fetches_urls=False)
    server = Server("p", newest, False, False)
    if provider.takes_source(lazy, frozenset()):
        as_it_is = call_of(lazy, stream=bool(body.get("stream")))
        sent = orjson.loads(build_openai(as_it_is, server))
        if sent.get("n") == 1:
            del sent["n"]  # it is what holds without it
        translated = Call(whole, TARGET, as_it_is.stream)
        assert sent == orjson.loads(build_openai(translated, server))
        assert as_it_is.dropped == []
        check_what_decides(lazy.request, whole)
    assert lazy.complete() == whole


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


@given(
    st.fixed_dictionaries(
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
)
@example(AGENTS_MESSAGES)
@settings(max_examples=400, deadline=None)
def test_messages_go_as_their_translation_would(body: Json) -> None:
    read = both(messages, {"model": "m", "max_tokens": 5, **body})
    if read is None or read[1] is None:
        return
    whole, lazy = read
    rules = {"pass_stateful": False, "fetches_urls": False, "official": True}
    if AnthropicProvider("p", None, **rules).takes_source(lazy, frozenset()):
        as_it_is = call_of(lazy, stream=bool(body.get("stream")))
        sent = build_anthropic(as_it_is, **rules)
        translated = build_anthropic(Call(whole, TARGET, as_it_is.stream), **rules)
        # Of two ways to write one content either may be used.
        assert messages(sent, False).request == messages(translated, False).request
        assert orjson.loads(sent).get("stream") == orjson.loads(translated).get("stream")
        assert as_it_is.dropped == []
        check_what_decides(lazy.request, whole)
    assert lazy.complete() == whole


@pytest.mark.parametrize("pass_stateful", [False, True])
def test_a_tool_that_names_a_file_of_the_provider_is_looked_at(pass_stateful: bool) -> None:
    example = {"type": "file", "file_id": "x"}
    tool = {"name": "f", "input_schema": {"type": "object"}, "examples": [example]}
    lazy = messages(dumped(HELLO | {"tools": [tool]}), True).lazy
    provider = AnthropicProvider(
        "p", None, pass_stateful=pass_stateful, fetches_urls=False, official=True
    )
    assert provider.takes_source(lazy, frozenset()) is pass_stateful


@pytest.mark.parametrize("system", ["x-anthropic-billing-header: a", "Be brief."])
def test_only_anthropic_gets_the_billing_header(system: str) -> None:
    lazy = messages(dumped(HELLO | {"system": system}), True).lazy
    for official in (False, True):
        provider = AnthropicProvider(
            "p", None, pass_stateful=False, fetches_urls=False, official=official
        )
        assert provider.takes_source(lazy, frozenset()) is (official or system == "Be brief.")


def chain(*parameters: Json) -> Json:
    steps = [
        {"step_id": f"s{number}", "model": "m", "parameters": each}
        for number, each in enumerate(parameters)
    ]
    return {"strategy": {"mode": "sequential"}, "steps": steps}


@pytest.mark.parametrize(("parse", "body"), [(chat, AGENTS_CHAT), (messages, AGENTS_MESSAGES)])
def test_what_agents_send_need_not_be_translated(parse: Any, body: Json) -> None:
    lazy = parse(dumped({"model": "m", "max_tokens": 5, **body}), True).lazy
    assert lazy is not None
    assert not lazy.request.messages and not lazy.request.tools


@pytest.mark.parametrize("parse", [chat, messages])
@pytest.mark.parametrize(
    "fields",
    [
        {"memory_id": "a"},
        {"memory_config": {"personal_memory": True}},
        {"multimodal": {}},
        {"fallback": "enabled", "fallback_config": chain({"temperature": 0.5})},
        {"fallback": "strict", "fallback_config": chain({}, {"temperature": 0.5})},
    ],
)
def test_what_an_extension_reads_is_translated_at_once(parse: Any, fields: Json) -> None:
    assert parse(dumped(HELLO | fields), True).lazy is None


@pytest.mark.parametrize("parse", [chat, messages])
@pytest.mark.parametrize(
    "fields",
    [
        {"fallback": "enabled", "fallback_config": chain({}, {})},
        {"fallback": "auto", "fallback_config": chain({"temperature": 0.5})},
    ],
)
def test_a_chain_that_changes_nothing_may_wait_for_its_turn(parse: Any, fields: Json) -> None:
    assert parse(dumped(HELLO | fields), True).lazy is not None


@pytest.mark.parametrize(
    ("parse", "body"),
    [
        (chat, AGENTS_CHAT | {"temperature": 0.2, "stream": True}),
        (
            messages,
            {"max_tokens": 5, "tool_choice": {"type": "auto"}, **AGENTS_MESSAGES},
        ),
    ],
)
def test_agents_settings_go_on_with_their_words(parse: Any, body: Json) -> None:
    lazy = parse(dumped({"model": "m", **body}), True).lazy
    assert lazy.is_whole
    assert lazy.fields.keys() == body.keys() - {"stream"}


@pytest.mark.parametrize(
    ("parse", "fields"),
    [
        (chat, {"reasoning_effort": "low"}),
        (chat, {"user": "u"}),
        (chat, {"store": False}),
        (chat, {"max_completion_tokens": 5}),  # beside max_tokens
        (chat, {"tool_choice": "auto"}),  # without tools
        (chat, {"stream": True, "stream_options": {"include_obfuscation": False}}),
        (messages, {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000}),
        (messages, {"metadata": {"user_id": "u"}}),
        (messages, {"tool_choice": {"type": "auto"}}),  # without tools
        (messages, {"further": 1}),
    ],
)
def test_settings_that_are_looked_at_are_translated(parse: Any, fields: Json) -> None:
    assert not parse(dumped(HELLO | fields), True).lazy.is_whole
