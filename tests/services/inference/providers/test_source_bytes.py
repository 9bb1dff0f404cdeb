"""Bytes that are passed on unchanged are those that were checked, however the JSON is written."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import GatewayError
from services.common.messages.lazy_request import LazyRequest
from services.inference.providers.anthropic.endpoints import OWN
from services.inference.providers.anthropic.request import build_request as build_anthropic
from services.inference.providers.base import Call
from services.inference.providers.openai.fields import Server
from services.inference.providers.openai.request import build_request as build_openai
from tests.grid import each_row
from tests.lazy_requests import lazy_of
from tests.services.inference.providers.caller_bodies import (
    AGENTS_CHAT,
    AGENTS_MESSAGES,
    TARGET,
    Json,
    chat,
    messages,
)
from tests.thoroughness import examples

# What a string may hold that not every reader takes alike, as bytes of JSON.
ODD_TEXTS = [b"\\ud83d\\ude00", b"\\ud800", b"\\u0000", b"\xff", b"\xed\xa0\x80", b"\n", b"\\x"]
ODD_NUMBERS = [b"1e999", b"1" + b"0" * 30, b"-0.0", b"1E2", b"01"]
OTHERS = [None, "", "other", 0, True, [], {}, {"type": "text", "text": "other"}]


class Writer:
    """Writes JSON as callers might: with spaces, escapes, and members that are there twice."""

    def __init__(self, random: Random, *, is_odd: bool) -> None:
        self._random = random
        self._is_odd = is_odd

    def write(self, value: Any) -> bytes:
        return self._space() + self._written(value) + self._space()

    def _written(self, value: Any) -> bytes:
        if isinstance(value, dict):
            members = []
            for name, inner in value.items():
                if self._rarely(30):
                    members.append(self._member(name, self._random.choice([inner, *OTHERS])))
                members.append(self._member(name, inner))
            return b"{" + b",".join(members) + b"}"
        if isinstance(value, list):
            return b"[" + b",".join(map(self.write, value)) + b"]"
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int) and self._is_odd and self._rarely(8):
            return self._random.choice(ODD_NUMBERS)
        return json.dumps(value).encode()

    def _member(self, name: str, value: Any) -> bytes:
        return self._space() + self._text(name) + self._space() + b":" + self.write(value)

    def _text(self, text: str) -> bytes:
        written = [
            b"\\u%04x" % ord(one) if self._rarely(8) else json.dumps(one)[1:-1].encode()
            for one in text
        ]
        if self._is_odd and self._rarely(30):
            written.append(self._random.choice(ODD_TEXTS))
        return b'"' + b"".join(written) + b'"'

    def _space(self) -> bytes:
        return self._random.choice([b" ", b"\n\t"]) if self._rarely(8) else b""

    def _rarely(self, one_in: int) -> bool:
        return self._random.randrange(one_in) == 0


def no_twins(members: list[tuple[str, Any]]) -> Json:
    """Return an object none of whose members is there twice."""
    found = dict(members)
    assert len(found) == len(members), members
    return found


def sent_by(parse: Any, request: GenerateRequest, lazy: LazyRequest | None) -> bytes:
    """Return the body for a provider of the caller's own dialect."""
    call = Call(request, TARGET, False, lazy=lazy)
    if parse is chat:
        return build_openai(call, Server("p", True, False, False))
    rules = {"pass_stateful": False, "fetches_urls": False, "official": True}
    return build_anthropic(call, OWN.head(call, []), **rules)


def read(parse: Any, raw: bytes, *, lazily: bool) -> Any:
    """Return what a body is read to, or what its caller is told of it."""
    try:
        return parse(raw, lazily)
    except GatewayError as error:
        return error.param, error.message


@pytest.mark.parametrize("is_odd", [False, True])
@pytest.mark.parametrize(("parse", "body"), [(chat, AGENTS_CHAT), (messages, AGENTS_MESSAGES)])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(60), deadline=None)
def test_what_is_sent_was_checked(parse: Any, body: Json, is_odd: bool, seed: int) -> None:
    full = {"model": "m", "max_tokens": 5, **body}
    raw = Writer(Random(seed), is_odd=is_odd).write(full)
    whole, lazily = read(parse, raw, lazily=False), read(parse, raw, lazily=True)
    if isinstance(whole, tuple):
        assert lazily == whole
        return
    lazy = lazy_of(lazily)
    if lazy is None:
        return
    sent = sent_by(parse, lazy.request, lazy)
    json.loads(sent, object_pairs_hook=no_twins)
    # Of two ways to write one content either may be used.
    assert parse(sent, False).request == parse(sent_by(parse, whole.request, None), False).request
    assert lazy.complete() == whole.request


@each_row("text", ODD_TEXTS)
@each_row("parse", [chat, messages])
def test_odd_texts_are_refused_alike(parse: Any, text: bytes) -> None:
    raw = b'{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"%b"}]}' % text
    whole, lazily = read(parse, raw, lazily=False), read(parse, raw, lazily=True)
    if isinstance(whole, tuple):
        assert lazily == whole
    else:
        assert lazy_of(lazily).complete() == whole.request


CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT = {
    "model": "m",
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "1", "content": "c"},
    ],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
}
RESULT = {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "c"}]}
MESSAGES = {
    "model": "m",
    "max_tokens": 5,
    "system": [{"type": "text", "text": "a"}],
    "messages": [
        {"role": "user", "content": "b"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {"x": {"y": 1}}}],
        },
        {"role": "user", "content": [RESULT]},
    ],
    "tools": [{"name": "f", "input_schema": {"type": "object"}}],
}


def placed_twice(value: Any) -> Iterator[bytes]:
    """Yield the JSON of a value with one of its members twice, for each member at any depth."""
    if isinstance(value, dict):
        for name in value:
            rest = {other: inner for other, inner in value.items() if other != name}
            for inner in [orjson.dumps(value[name]), *placed_twice(value[name])]:
                twins = b'"%b":%b,"%b":%b' % (name.encode(), inner, name.encode(), inner)
                yield b"{%b%b%b}" % (twins, b"," if rest else b"", orjson.dumps(rest)[1:-1])
    elif isinstance(value, list):
        for index, one in enumerate(value):
            for inner in placed_twice(one):
                written = [*map(orjson.dumps, value[:index]), inner]
                written += map(orjson.dumps, value[index + 1 :])
                yield b"[%b]" % b",".join(written)


@pytest.mark.parametrize(("parse", "body"), [(chat, CHAT), (messages, MESSAGES)])
def test_no_member_is_sent_twice(parse: Any, body: Json) -> None:
    raws = [*placed_twice(body)]
    assert len(raws) > 20
    for raw in raws:
        lazy = lazy_of(parse(raw, True))
        assert lazy is not None, raw
        sent = sent_by(parse, lazy.request, lazy)
        assert json.loads(sent, object_pairs_hook=no_twins) | {"model": "m"} == body


@pytest.mark.parametrize("first", [b"1e999", b"1" + b"0" * 400, b"{}", b"[" * 100 + b"]" * 100])
def test_of_twins_the_last_counts_whatever_the_first_is(first: bytes) -> None:
    raw = orjson.dumps(MESSAGES).replace(b'"input":', b'"input":%b,"input":' % first)
    whole, lazily = read(messages, raw, lazily=False), read(messages, raw, lazily=True)
    assert lazy_of(lazily).complete() == whole.request
    lazy = lazy_of(lazily)
    sent = sent_by(messages, lazy.request, lazy)
    assert json.loads(sent, object_pairs_hook=no_twins) | {"model": "m"} == MESSAGES


@pytest.mark.parametrize(("parse", "body"), [(chat, AGENTS_CHAT), (messages, AGENTS_MESSAGES)])
def test_tools_that_were_seen_before_are_not_mixed_up(parse: Any, body: Json) -> None:
    first = orjson.dumps({"model": "m", "max_tokens": 5, **body})
    second = first.replace(b'"object"', b'"obiect"')
    for raw in (first, second, first):
        lazy = lazy_of(parse(raw, True))
        assert orjson.loads(lazy.json_of("tools")) == orjson.loads(raw)["tools"]
