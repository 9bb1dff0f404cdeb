"""Bodies of equal settings, of which the conversations alone differ."""

from collections.abc import Callable
from functools import partial
from typing import Any

import orjson
import pytest

from facade.dialects.anthropic import parse_messages
from facade.dialects.openai import parse_chat
from facade.dialects.responses import parse_request
from services.common.errors import GatewayError
from tests.grid import each_row
from tests.lazy_requests import lazy_of

CHAIN = {
    "fallback": "enabled",
    "fallback_config": {
        "strategy": {"mode": "sequential"},
        "steps": [{"step_id": "spare", "model": "b", "retry_policy": {"max_retries": 1}}],
    },
}
MESSAGES = partial(parse_messages, betas=[], coding=False)
PARSERS: list[Any] = [
    pytest.param(parse_chat, "messages", {"temperature": 0.5}, id="chat"),
    pytest.param(parse_chat, "messages", {"user": "ada", "top_logprobs": 1}, id="further settings"),
    pytest.param(
        parse_chat,
        "messages",
        {
            "stream": True,
            "stream_options": {"include_usage": True, "include_obfuscation": False},
            "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}},
            "logit_bias": {"50256": -100},
            "metadata": {"team": "search"},
            "stop": ["END"],
        },
        id="nested settings",
    ),
    pytest.param(parse_chat, "messages", CHAIN, id="chain"),
    pytest.param(MESSAGES, "messages", {"max_tokens": 9}, id="messages"),
    pytest.param(
        MESSAGES,
        "messages",
        {
            "max_tokens": 2_000,
            "thinking": {"type": "enabled", "budget_tokens": 1_024},
            "metadata": {"user_id": "ada"},
            "stop_sequences": ["END"],
            **CHAIN,
        },
        id="nested settings of messages",
    ),
    pytest.param(parse_request, "input", {"store": False}, id="responses"),
    pytest.param(
        parse_request,
        "input",
        {
            "store": False,
            "metadata": {"team": "search"},
            "text": {"format": {"type": "json_object"}, "verbosity": "low"},
            "reasoning": {"effort": "low"},
            **CHAIN,
        },
        id="nested settings of responses",
    ),
]


def body(field: str, text: str, settings: dict[str, Any]) -> bytes:
    messages = [{"role": "user", "content": text}]
    return orjson.dumps({"model": "m", field: messages, **settings})


@each_row(("parse", "field", "settings"), PARSERS)
def test_conversations_of_equal_settings_stay_apart(
    parse: Callable[..., Any], field: str, settings: dict[str, Any]
) -> None:
    texts = ["first", "second", "third"]
    parsed = [parse(body(field, text, settings), lazily=True) for text in texts]
    # Each is looked at before any is completed, as the balancer does.
    assert [next(iter(lazy_of(each).beginning())).texts for each in parsed]
    requests = [lazy_of(each).complete() for each in parsed]
    assert [request.messages[0].blocks[0].text for request in requests] == texts
    for text, request in zip(texts, requests, strict=True):
        assert request == parse(body(field, text, settings)).request


def test_the_last_value_of_a_repeated_member_counts() -> None:
    sent = b'{"model":"m","messages":[{"role":"user","content":1,"content":"Hello"}]}'
    lazy = lazy_of(parse_chat(sent, lazily=True))
    assert lazy.plain is None and list(lazy.beginning()) == []
    assert lazy.json_of("messages") == b'[{"role":"user","content":"Hello"}]'
    assert lazy.complete().messages[0].blocks[0].text == "Hello"


def test_a_conversation_nested_too_deeply_is_refused() -> None:
    """As for the second step of a chain, after the first refused it."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": "deep"}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "b"}
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    whole = orjson.dumps({"model": "m", "max_tokens": 9, "messages": messages, "tools": tools})
    nested = b'{"a":' * 198 + b"1" + b"}" * 198
    lazy = lazy_of(MESSAGES(whole.replace(b'"deep"', nested), lazily=True))
    assert lazy is not None
    for _ in range(2):
        with pytest.raises(GatewayError) as caught:
            lazy.complete()
        assert caught.value.param == "messages"
        assert caught.value.message == "messages is nested more than 200 levels deep"


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
FUNCTION = {"name": "f", "parameters": SCHEMA}


@pytest.mark.parametrize(
    ("parse", "field", "choice", "tool", "settings"),
    [
        pytest.param(
            parse_chat,
            "messages",
            "auto",
            {"type": "function", "function": FUNCTION},
            {},
            id="chat",
        ),
        pytest.param(
            MESSAGES,
            "messages",
            {"type": "auto"},
            {"name": "f", "input_schema": SCHEMA},
            {"max_tokens": 9},
            id="messages",
        ),
        pytest.param(
            parse_request,
            "input",
            "auto",
            {"type": "function", "strict": False, **FUNCTION},
            {"store": False},
            id="responses",
        ),
    ],
)
def test_a_choice_of_tools_is_passed_on_only_with_tools(
    parse: Callable[..., Any],
    field: str,
    choice: Any,
    tool: dict[str, Any],
    settings: dict[str, Any],
) -> None:
    """Providers reject the choice of a request without tools; the settings are kept for both."""
    settings = {**settings, "tool_choice": choice}
    for tools in ([tool], [], [tool]):
        with_tools = {**settings, "tools": tools} if tools else settings
        lazy = lazy_of(parse(body(field, "hi", with_tools), lazily=True))
        assert ("tool_choice" in lazy.fields, lazy.has_whole_body) == (bool(tools), bool(tools))
