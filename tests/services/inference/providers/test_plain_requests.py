"""A request written from its plain form says what its translation would say."""

from collections.abc import Callable
from functools import partial
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from services.common.errors import GatewayError
from services.common.messages.plain_message import PlainMessage
from services.inference.learned.refusals import STREAM_OPTIONS
from services.inference.providers.anthropic import AnthropicProvider
from services.inference.providers.anthropic.endpoints import OWN
from services.inference.providers.anthropic.request import build_request as build_anthropic
from services.inference.providers.base import Call, Target
from services.inference.providers.openai.fields import Server
from services.inference.providers.openai.provider import OpenAIProvider
from services.inference.providers.openai.request import build_request as build_openai
from services.inference.request.thinking import Signer, apply_strategy
from tests.lazy_requests import lazy_of
from tests.services.inference.providers.caller_bodies import (
    AGENTS_CHAT,
    AGENTS_MESSAGES,
    AGENTS_RESPONSE,
    BILLING,
    CHATS,
    FUNCTION,
    MESSAGE_BODIES,
    Json,
    both,
    chat,
    dumped,
    messages,
    response,
)
from tests.thoroughness import examples

RULES = {"pass_stateful": False, "fetches_urls": False, "official": True}


def to_messages(call: Call) -> bytes:
    return build_anthropic(call, OWN.head(call, []), **RULES)


WORDS = st.sampled_from(["a", "b\n", " ", "é"])
SIGNER = Signer({"k": b"key"}, "k")
REFUSED = st.sets(
    st.sampled_from(["temperature", "top_p", "max_tokens", "tool_choice", STREAM_OPTIONS])
)
Build = Callable[[Call], bytes]


def sent(build: Build, call: Call) -> Any:
    """Return what is sent, with what is told of it, or the refusal."""
    try:
        body = orjson.loads(build(call))
    except GatewayError as error:
        return error.param, error.message
    return body, call.dropped, call.tool_names


def check(parse: Any, body: Json, build: Build, provider: Any, refused: set[str]) -> None:
    read = both(parse, {"model": "m", **body})
    if read is None or read[1] is None or read[1].plain is None:
        return
    whole, lazy = read
    target = Target("m", "p", "up", refuses=frozenset(refused))
    if provider.takes_lazy(lazy, target.refuses):
        call = partial(
            Call, target=target, stream=bool(body.get("stream")), refused_fields=target.refuses
        )
        given = call(lazy.request, lazy=lazy, plain=lazy.plain)
        taken = apply_strategy(
            whole,
            target_checks=provider.checks_signatures,
            target_dialect=provider.dialect,
            signer=SIGNER,
        )
        assert sent(build, given) == sent(build, call(taken))


def parts(kind: str, *marks: Any) -> st.SearchStrategy[Any]:
    """Return a strategy of contents that are nothing but text."""
    part = st.fixed_dictionaries(
        {"type": st.just(kind), "text": WORDS},
        optional={"cache_control": st.sampled_from(marks)} if marks else {},
    )
    return st.one_of(WORDS, st.lists(part, min_size=1, max_size=3))


CHAT_CALL = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["call_1", "ü"]),
        "type": st.just("function"),
        "function": st.fixed_dictionaries(
            {
                "name": st.just("f"),
                "arguments": st.sampled_from(["{}", ' {"x": 1e400}', "no JSON", " ", "[1]"]),
            }
        ),
    }
)
CHAT_RESULT = st.fixed_dictionaries(
    {"role": st.just("tool"), "tool_call_id": st.sampled_from(["call_1", "ü"])}
    | {"content": st.one_of(WORDS, st.just(""))}
)
CHAT_TURN = st.one_of(
    st.tuples(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "system", "assistant"]), "content": parts("text")}
        )
    ),
    st.tuples(
        st.fixed_dictionaries(
            {
                "role": st.just("assistant"),
                "content": st.one_of(st.none(), parts("text")),
                "tool_calls": st.lists(CHAT_CALL, min_size=1, max_size=2),
            }
        ),
        CHAT_RESULT,
    ),
)
UNTYPED = {"type": "function", "function": {"name": "f", "parameters": {"properties": {}}}}
PLAIN_CHATS = st.fixed_dictionaries(
    {
        "messages": st.lists(CHAT_TURN, min_size=1, max_size=4).map(
            lambda turns: [message for turn in turns for message in turn]
        )
    },
    optional={
        "tools": st.just(AGENTS_CHAT["tools"]),
        "tool_choice": st.just("auto"),
        "max_tokens": st.just(5),
        "temperature": st.sampled_from([0, 0.5, 1.5]),
        "n": st.sampled_from([1, 2]),
        "seed": st.just(7),
        "stop": st.just("a"),
        "reasoning_effort": st.just("low"),
        "response_format": st.just({"type": "json_object"}),
        "stream": st.booleans(),
    },
)


@given(st.one_of(CHATS, PLAIN_CHATS), REFUSED)
@example(AGENTS_CHAT, set())
@example({**AGENTS_CHAT, "temperature": 1.5}, set())
@example({**AGENTS_CHAT, "tools": [UNTYPED]}, set())
@example({**AGENTS_CHAT, "max_completion_tokens": 5, "stream": True}, {"max_tokens"})
@settings(max_examples=examples(120), deadline=None)
def test_a_plain_chat_becomes_messages(body: Json, refused: set[str]) -> None:
    provider = AnthropicProvider("p", None, **RULES)
    check(chat, body, to_messages, provider, refused)


MARKS = (None, {"type": "ephemeral"})
RESULT = st.fixed_dictionaries(
    {"type": st.just("tool_result"), "tool_use_id": st.just("t1")},
    optional={
        "content": st.one_of(st.just(""), parts("text", *MARKS)),
        "is_error": st.booleans(),
        "cache_control": st.just(MARKS[1]),
    },
)
CALL = st.fixed_dictionaries(
    {
        "type": st.just("tool_use"),
        "id": st.just("t1"),
        "name": st.sampled_from(["f", "f.g"]),
        "input": st.just({"x": [1.5, None]}),
    },
    optional={"cache_control": st.just(MARKS[1])},
)
TEXT = st.fixed_dictionaries(
    {"type": st.just("text"), "text": WORDS}, optional={"cache_control": st.sampled_from(MARKS)}
)


def said(role: str, first: Any, then: Any) -> st.SearchStrategy[Any]:
    """Return a strategy of messages with blocks of one kind before those of another."""
    blocks = st.tuples(st.lists(first, max_size=2), st.lists(then, max_size=2))
    content = st.one_of(WORDS, blocks.map(lambda both: both[0] + both[1]))
    return st.fixed_dictionaries({"role": st.just(role), "content": content})


PLAIN_MESSAGES = st.fixed_dictionaries(
    {
        "messages": st.tuples(
            st.lists(
                st.tuples(said("user", RESULT, TEXT), said("assistant", TEXT, CALL)), max_size=2
            ),
            said("user", RESULT, TEXT),
        ).map(lambda turns: [message for pair in turns[0] for message in pair] + [turns[1]])
    },
    optional={
        "system": st.one_of(
            parts("text", *MARKS), st.sampled_from([BILLING, f"{BILLING}: a\nBe brief."])
        ),
        "tools": st.sampled_from(
            [
                AGENTS_MESSAGES["tools"],
                [{"name": "f.g", "input_schema": {"type": "object"}, "cache_control": MARKS[1]}],
                [{"name": "f", "input_schema": {}, "strict": False}],
                [
                    {"name": "f", "input_schema": {"type": "object"}},
                    {"name": "g", "input_schema": {"type": "object"}, "defer_loading": True},
                    {"name": "h", "input_schema": {"type": "object"}, "input_examples": [{}]},
                ],
            ]
        ),
        "tool_choice": st.just({"type": "auto"}),
        "temperature": st.sampled_from([0, 0.5]),
        "top_k": st.just(3),
        "stop_sequences": st.just(["a"]),
        "metadata": st.just({"user_id": "u"}),
        "thinking": st.just({"type": "enabled", "budget_tokens": 1024}),
        "stream": st.booleans(),
    },
)


@given(st.one_of(MESSAGE_BODIES, PLAIN_MESSAGES), st.booleans(), REFUSED)
@example(AGENTS_MESSAGES, False, set())
@example(
    {"max_tokens": 5, "messages": [{"role": "user", "content": "a"}], "system": " "}, False, set()
)
@settings(max_examples=examples(120), deadline=None)
def test_plain_messages_become_a_chat(body: Json, newest: bool, refused: set[str]) -> None:
    provider = OpenAIProvider("p", None, pass_stateful=False, newest=newest, fetches_urls=False)
    server = Server("p", newest, False, False)
    body = {"max_tokens": 2000, **body}
    check(messages, body, partial(build_openai, server=server), provider, refused)


OF_ANSWERS = {"id": st.just("i"), "status": st.just("completed"), "further": st.just(None)}


def item(fields: Json, **strategies: Any) -> st.SearchStrategy[Any]:
    """Return a strategy of items, now and then with fields of an answer's."""
    given = {name: st.just(value) for name, value in fields.items()} | strategies
    return st.fixed_dictionaries(given, optional=OF_ANSWERS)


def items(kind: str) -> st.SearchStrategy[Any]:
    """Return a strategy of the contents of a message or an output."""
    part = st.fixed_dictionaries(
        {"type": st.just(kind), "text": WORDS},
        optional={"annotations": st.sampled_from([[], [{"type": "url_citation"}], None])},
    )
    return st.one_of(WORDS, st.lists(part, min_size=1, max_size=3))


ITEMS = st.one_of(
    item({"role": "user"}, content=items("input_text")),
    item({"type": "message", "role": "assistant"}, content=items("output_text")),
    item({}, role=st.sampled_from(["system", "developer"]), content=items("input_text")),
    item(
        {"type": "function_call", "name": "f"},
        call_id=st.sampled_from(["call_1", "ü"]),
        arguments=st.sampled_from(["{}", ' {"x": 1e400}', "no JSON", " "]),
    ),
    item(
        {"type": "function_call_output"},
        call_id=st.sampled_from(["call_1", "ü"]),
        output=st.one_of(items("input_text"), st.just("")),
    ),
    item({"type": "custom_tool_call", "call_id": "call_1", "name": "f", "input": "a"}),
)
PROMPTS = {"system", "developer"}
PROMPT = {"role": "developer", "content": "Be brief."}
PLAIN_RESPONSES = st.fixed_dictionaries(
    {
        "input": st.one_of(
            WORDS,
            st.lists(ITEMS, min_size=1, max_size=6).filter(
                lambda items: any(item.get("role") not in PROMPTS for item in items)
            ),
        )
    },
    optional={
        "instructions": WORDS,
        "tools": st.lists(
            st.sampled_from(
                [
                    FUNCTION,
                    {**FUNCTION, "name": "g", "strict": None, "description": "d"},
                    {"type": "function", "name": "h", "parameters": {}, "description": ""},
                    {"type": "custom", "name": "c"},
                ]
            ),
            max_size=2,
        ),
        "max_output_tokens": st.just(5),
        "temperature": st.sampled_from([0, 0.5, 1.5]),
        "top_p": st.just(0.5),
        "parallel_tool_calls": st.just(False),
        "metadata": st.just({"k": "v"}),
        "reasoning": st.just({"effort": "low"}),
        "stream": st.booleans(),
        "store": st.booleans(),
    },
)


@given(PLAIN_RESPONSES, st.booleans(), REFUSED)
@example(AGENTS_RESPONSE, False, set())
@example({**AGENTS_RESPONSE, "temperature": 1.5}, True, {"max_tokens"})
@example({"input": [PROMPT, {"role": "user", "content": "Hi"}]}, True, set())
@settings(max_examples=examples(120), deadline=None)
def test_plain_responses_become_a_chat(body: Json, newest: bool, refused: set[str]) -> None:
    provider = OpenAIProvider("p", None, pass_stateful=False, newest=newest, fetches_urls=False)
    server = Server("p", newest, False, False)
    check(response, body, partial(build_openai, server=server), provider, refused)


@given(PLAIN_RESPONSES, REFUSED)
@example(AGENTS_RESPONSE, set())
@example({**AGENTS_RESPONSE, "temperature": 1.5}, set())
@settings(max_examples=examples(120), deadline=None)
def test_plain_responses_become_messages(body: Json, refused: set[str]) -> None:
    provider = AnthropicProvider("p", None, **RULES)
    check(response, body, to_messages, provider, refused)


@pytest.mark.parametrize(
    "item",
    [
        {"type": "custom_tool_call", "call_id": "1", "name": "f", "input": "a"},
        {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAB"},
        {"type": "function_call_output", "call_id": "2", "output": "of no call"},
    ],
)
def test_items_of_this_dialect_alone_are_not_plain(item: Json) -> None:
    body = {"model": "m", "input": [item, {"role": "user", "content": "Go on"}]}
    lazy = lazy_of(response(dumped(body), True))
    assert lazy is not None and lazy.plain is None


@pytest.mark.parametrize(
    ("parse", "body"),
    [
        (chat, AGENTS_CHAT),
        (response, AGENTS_RESPONSE),
        (messages, {**AGENTS_MESSAGES, "max_tokens": 5}),
    ],
)
def test_what_agents_send_is_plain(parse: Any, body: Json) -> None:
    lazy = lazy_of(parse(dumped({"model": "m", **body}), True))
    assert lazy.plain is not None and lazy.plain.settings is not None
    assert all(isinstance(message, PlainMessage) for message in lazy.plain.messages)


def test_one_message_that_is_not_plain_is_canonical() -> None:
    block = {"type": "text", "text": "after the call"}
    call = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    body = {
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [call, block]},
            {"role": "user", "content": "Go on"},
        ]
    }
    lazy = lazy_of(messages(dumped({"model": "m", "max_tokens": 5, **body}), True))
    whole = messages(dumped({"model": "m", "max_tokens": 5, **body}), False).request
    first, other, last = lazy.plain.messages
    assert (first, last) == (PlainMessage("user", "Hi"), PlainMessage("user", "Go on"))
    assert other == whole.messages[1]
