"""A conversation that goes as its caller wrote it says what its translation would say."""

import copy
import itertools
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.messages.lazy_request import LazyRequest
from services.inference.providers.anthropic import AnthropicProvider
from services.inference.providers.anthropic.endpoints import OWN
from services.inference.providers.anthropic.request import build_request as build_anthropic
from services.inference.providers.base import Call
from services.inference.providers.openai.fields import Server
from services.inference.providers.openai.provider import OpenAIProvider
from services.inference.providers.openai.request import build_request as build_openai
from tests.grid import each_row
from tests.lazy_requests import lazy_of
from tests.services.inference.providers.caller_bodies import (
    AGENTS_CHAT,
    AGENTS_MESSAGES,
    CHATS,
    HELLO,
    MARK,
    MESSAGE_BODIES,
    TARGET,
    Json,
    both,
    chat,
    dumped,
    messages,
)
from tests.thoroughness import examples

# What a member may be replaced by; REMOVED takes it away.
REMOVED = object()
VALUES = [REMOVED, None, "", "a", 0, 1, True, [], ["a"], [{}], {}, {"type": "text"}, [None], [[]]]


CALLS = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}],
}
RESULT = {"type": "tool_result", "tool_use_id": "t1"}
TOOLS = [{"name": "f", "input_schema": {"type": "object"}}]


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


def places_in(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all members and items of a JSON value, at any depth."""
    if not isinstance(value, dict | list):
        return []
    members = value.items() if isinstance(value, dict) else enumerate(value)
    return [
        found
        for name, inner in members
        for found in ((*place, name), *places_in(inner, (*place, name)))
    ]


def change_at(body: Any, place: tuple[Any, ...], value: Any) -> None:
    """Put a value in the place of another one in a JSON value, or take that one away."""
    *outer, last = place
    for name in outer:
        body = body[name]
    if value is REMOVED:
        del body[last]
    else:
        body[last] = value


def call_of(lazy: LazyRequest, *, stream: bool) -> Call:
    """Return the call of a first attempt at a provider of the caller's own dialect."""
    return Call(lazy.request, TARGET, stream, lazy=lazy)


def check_what_decides(lazy: GenerateRequest, whole: GenerateRequest) -> None:
    """Check that a request says before it is complete what plans and answers are made by."""
    for name in ("model", "dialect", "n", "max_tokens", "fallback", "betas", "thinking"):
        assert getattr(lazy, name) == getattr(whole, name), name


@given(CHATS, st.booleans())
@example(AGENTS_CHAT, True)
@example({**AGENTS_CHAT, "stream": True, "stream_options": {"include_usage": False}}, True)
@example({**AGENTS_CHAT, "tools": [], "n": 1}, True)
@settings(max_examples=examples(80), deadline=None)
def test_a_chat_goes_as_its_translation_would(body: Json, newest: bool) -> None:
    read = both(chat, {"model": "m", **body})
    if read is None or read[1] is None:
        return
    whole, lazy = read
    provider = OpenAIProvider("p", None, pass_stateful=False, newest=newest, fetches_urls=False)
    server = Server("p", newest, False, False)
    if provider.takes_lazy(lazy, frozenset()):
        as_it_is = call_of(lazy, stream=bool(body.get("stream")))
        sent = orjson.loads(build_openai(as_it_is, server))
        if sent.get("n") == 1:
            del sent["n"]  # it is what holds without it
        translated = Call(whole, TARGET, as_it_is.stream)
        assert sent == orjson.loads(build_openai(translated, server))
        assert as_it_is.dropped == []
        check_what_decides(lazy.request, whole)
    assert lazy.complete() == whole


@given(MESSAGE_BODIES)
@example(AGENTS_MESSAGES)
@example({"messages": [user("a"), CALLS, user([{**RESULT, "content": " "}])], "tools": TOOLS})
@settings(max_examples=examples(80), deadline=None)
def test_messages_go_as_their_translation_would(body: Json) -> None:
    read = both(messages, {"model": "m", "max_tokens": 5, **body})
    if read is None or read[1] is None:
        return
    whole, lazy = read
    rules = {"pass_stateful": False, "fetches_urls": False, "official": True}
    if AnthropicProvider("p", None, **rules).takes_lazy(lazy, frozenset()):
        as_it_is = call_of(lazy, stream=bool(body.get("stream")))
        sent = build_anthropic(as_it_is, OWN.head(as_it_is, []), **rules)
        call = Call(whole, TARGET, as_it_is.stream)
        translated = build_anthropic(call, OWN.head(call, []), **rules)
        # Of two ways to write one content either may be used.
        assert messages(sent, False).request == messages(translated, False).request
        assert orjson.loads(sent).get("stream") == orjson.loads(translated).get("stream")
        assert as_it_is.dropped == []
        check_what_decides(lazy.request, whole)
    assert lazy.complete() == whole


@pytest.mark.parametrize(
    "field",
    [
        {"examples": [{"type": "file", "file_id": "x"}]},
        {"model": "other"},
        {"allowed_callers": [{"id": "x"}]},
        {"defer_loading": {"container": "x"}},
        {"cache_control": {"type": "ephemeral", "container": "x"}},
    ],
)
def test_a_tool_with_fields_of_its_own_is_looked_at(field: Json) -> None:
    tool = {"name": "f", "input_schema": {"type": "object"}, **field}
    assert lazy_of(messages(dumped(HELLO | {"tools": [tool]}), True)) is None


# With all members that a tool may have.
FUNCTION = {"name": "f", "description": "does", "parameters": {"type": "object"}, "strict": True}
FULL_CHAT = {**AGENTS_CHAT, "tools": [{"type": "function", "function": FUNCTION}]}
FULL_MESSAGES = {
    **AGENTS_MESSAGES,
    "tools": [{**AGENTS_MESSAGES["tools"][0], "strict": True, "cache_control": MARK}],
}


@pytest.mark.parametrize(("parse", "body"), [(chat, FULL_CHAT), (messages, FULL_MESSAGES)])
def test_a_changed_conversation_is_read_alike(parse: Any, body: Json) -> None:
    """Validation and the short check accept and refuse the same conversations."""
    body = {"model": "m", "max_tokens": 5, **body}
    assert lazy_of(parse(dumped(body), True)) is not None
    for place, value in itertools.product(places_in(body), VALUES):
        changed = copy.deepcopy(body)
        change_at(changed, place, value)
        read = both(parse, changed)
        if read is not None and read[1] is not None:
            assert read[1].complete() == read[0], (place, value)


@pytest.mark.parametrize("system", ["x-anthropic-billing-header: a", "Be brief."])
def test_only_anthropic_gets_the_billing_header(system: str) -> None:
    lazy = lazy_of(messages(dumped(HELLO | {"system": system}), True))
    for official in (False, True):
        provider = AnthropicProvider(
            "p", None, pass_stateful=False, fetches_urls=False, official=official
        )
        assert provider.takes_lazy(lazy, frozenset()) is (official or system == "Be brief.")


def chain(*parameters: Json) -> Json:
    steps = [
        {"step_id": f"s{number}", "model": "m", "parameters": each}
        for number, each in enumerate(parameters)
    ]
    return {"strategy": {"mode": "sequential"}, "steps": steps}


@pytest.mark.parametrize(("parse", "body"), [(chat, AGENTS_CHAT), (messages, AGENTS_MESSAGES)])
def test_what_agents_send_need_not_be_translated(parse: Any, body: Json) -> None:
    lazy = lazy_of(parse(dumped({"model": "m", "max_tokens": 5, **body}), True))
    assert lazy is not None
    assert not lazy.request.messages and not lazy.request.tools


@each_row("parse", [chat, messages])
@each_row(
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
    assert lazy_of(parse(dumped(HELLO | fields), True)) is None


@pytest.mark.parametrize("parse", [chat, messages])
@pytest.mark.parametrize(
    "fields",
    [
        {"fallback": "enabled", "fallback_config": chain({}, {})},
        {"fallback": "auto", "fallback_config": chain({"temperature": 0.5})},
    ],
)
def test_a_chain_that_changes_nothing_may_wait_for_its_turn(parse: Any, fields: Json) -> None:
    assert lazy_of(parse(dumped(HELLO | fields), True)) is not None


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
    lazy = lazy_of(parse(dumped({"model": "m", **body}), True))
    assert lazy.has_whole_body
    assert lazy.fields.keys() == body.keys() - {"stream"}


@each_row(
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
    assert not lazy_of(parse(dumped(HELLO | fields), True)).has_whole_body
