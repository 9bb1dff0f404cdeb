"""Any JSON value at any place of a provider's answer gives an answer or a failure of its own.

The samples are answers with everything that the two protocols document; each place of each
is replaced by values of every type and size, one at a time, and several at random.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Message
from gateway.inference.v1.inference_pb2 import GenerateRequest
from gateway.inference.v1.inference_pb2 import Memory as WantedMemory
from services.common.errors import GatewayError, UpstreamError
from tests.services.inference.providers import gemini_answers
from tests.services.inference.providers.anthropic_answers import STREAM as MESSAGE_EVENTS
from tests.services.inference.providers.anthropic_answers import WHOLE as MESSAGE
from tests.services.inference.providers.changes import GONE, Path, changed, spread, values
from tests.services.inference.providers.chat_answers import CHUNKS, COMPLETION
from tests.services.inference.providers.embedding_calls import embed
from tests.services.inference.providers.hostile_engine import (
    ANTHROPIC,
    OPENAI,
    HostileEngine,
    Kind,
    asked,
)
from tests.thoroughness import examples, sampled

pytestmark = pytest.mark.thorough

PLAIN_COMPLETION = changed(
    COMPLETION,
    {
        ("choices", 0, "message", "tool_calls"): GONE,
        ("choices", 0, "message", "reasoning_content"): GONE,
        ("choices", 0, "logprobs"): None,
        ("system_fingerprint",): GONE,
        ("usage", "prompt_tokens_details", "audio_tokens"): GONE,
        ("usage", "completion_tokens_details", "accepted_prediction_tokens"): GONE,
    },
)
PLAIN_MESSAGE = changed(
    MESSAGE,
    {
        ("content",): [{"type": "text", "text": "hello"}],
        ("stop_reason",): "end_turn",
        ("container",): GONE,
    },
)


LONG = "x" * 5000
DEEP: Any = 0
for _ in range(240):
    DEEP = [DEEP]
DEEPER: Any = DEEP
for _ in range(700):  # more than is written, less than is read
    DEEPER = [DEEPER]
HOSTILE: dict[str, Any] = {
    "gone": GONE,
    "null": None,
    "true": True,
    "false": False,
    "zero": 0,
    "one": 1,
    "minus one": -1,
    "a choice far off": 2**31,
    "a call far off": 999_999_999,
    "beyond int64": 2**63,
    "the most of uint64": 2**64 - 1,
    "the least of int64": -(2**63),
    "half": 0.5,
    "one as a float": 1.0,
    "a huge float": 1.7e308,
    "no text": "",
    "text": "x",
    "a number as text": "05000000000",
    "NUL": "a\0b\r\n\u2028\ufeff",
    "astral": "\U0001f600\u0301",
    "long text": LONG,
    "error": "error",
    "no list": [],
    "a list of null": [None],
    "a list of text": ["x", 1],
    "a list of lists": [[[]]],
    "a list of objects": [{}, {"type": "text"}, {"type": []}],
    "a long list": [0] * 3000,
    "many objects": [{}] * 300,
    "no object": {},
    "an object": {"a": 1},
    "an object with an error": {"error": {"message": "x", "code": 1}},
    "an object without a name": {"": {"": None}},
    "an object of a text": {"type": "text", "text": "x"},
    "deep": DEEP,
    "deeper": DEEPER,
}


def dumped(value: Any) -> bytes:
    """Write JSON, however deeply nested it is."""
    if value is DEEPER:
        return b"[" * 940 + b"0" + b"]" * 940
    mark = b'"\\u0001deeper"'
    return orjson.dumps(_marked(value)).replace(mark, dumped(DEEPER))


def _marked(value: Any) -> Any:
    if value is DEEPER:
        return "\1deeper"
    if isinstance(value, dict):
        return {key: _marked(inner) for key, inner in value.items()}
    if isinstance(value, list) and value is not DEEP:
        return [_marked(inner) for inner in value]
    return value


def put(sample: Mapping[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """Return a sample with another value at a place."""
    other: dict[str, Any] = copy.deepcopy(dict(sample))
    holder: Any = other
    for key in path[:-1]:
        holder = holder[key]
    if value is GONE:
        if isinstance(holder, list):
            del holder[path[-1]]
        else:
            holder.pop(path[-1], None)
    else:
        holder[path[-1]] = value
    return other


PREFILL = Message(role=conversation_pb2.ROLE_ASSISTANT, blocks=[Block(text="hel")])
# How callers ask, so that every transformation of an answer takes part.
WAYS: dict[str, Callable[[], GenerateRequest]] = {
    "OpenAI's caller": lambda: asked(OPENAI),
    "Anthropic's caller with a stop sequence": lambda: asked(ANTHROPIC, stop_sequences=["lo"]),
    "a prefill": lambda: asked(ANTHROPIC, PREFILL),
    "two choices": lambda: asked(OPENAI, n=2),
    "remembered": lambda: asked(OPENAI, memory=WantedMemory(memory_id="m")),
}
EVERY_WAY = tuple(WAYS)
WHOLES: dict[str, tuple[Kind, Mapping[str, Any]]] = {
    "a completion": ("openai", COMPLETION),
    "a plain completion": ("openai", PLAIN_COMPLETION),
    "a message": ("anthropic", MESSAGE),
    "a plain message": ("anthropic", PLAIN_MESSAGE),
    "Gemini's answer": ("gemini", gemini_answers.WHOLE),
}
STREAMS: dict[str, tuple[Kind, Sequence[Mapping[str, Any]]]] = {
    "chunks": ("openai", CHUNKS),
    "events": ("anthropic", MESSAGE_EVENTS),
    "Gemini's events": ("gemini", gemini_answers.CHUNKS),
}


def event_of(kind: Kind, data: Any) -> bytes:
    """Return one event of a stream, with its name where the protocol has names."""
    line = b""
    if kind == "anthropic" and isinstance(data, dict) and isinstance(data.get("type"), str):
        name = data["type"].splitlines() or [""]
        line = b"event: %s\n" % name[0].encode()
    return b"%bdata: %b\n\n" % (line, dumped(data))


def stream_of(kind: Kind, events: Sequence[bytes]) -> bytes:
    """Return a stream of events, with its end where the protocol has one."""
    return b"".join([*events, b"data: [DONE]\n\n" if kind == "openai" else b""])


def wire(kind: Kind, events: Sequence[Any]) -> bytes:
    """Return a stream of what its events hold."""
    return stream_of(kind, [event_of(kind, data) for data in events])


async def ask_whole(
    hostile: HostileEngine, body: bytes, ways: Sequence[str] = EVERY_WAY
) -> list[Any]:
    """Ask for a whole answer in several ways; return what callers read."""
    hostile.upstream.headers["content-type"] = "application/json"
    hostile.upstream.pieces = [body]
    return [
        await hostile.whole(WAYS[way]()) for way in ways if _is_possible(hostile, way, whole=True)
    ]


async def ask_stream(
    hostile: HostileEngine, text: bytes, ways: Sequence[str] = EVERY_WAY
) -> list[Any]:
    """Ask for a stream in several ways; return what callers read."""
    hostile.upstream.headers["content-type"] = "text/event-stream"
    hostile.upstream.pieces = [text[at : at + 700] for at in range(0, len(text), 700)]
    return [
        await hostile.streamed(WAYS[way]())
        for way in ways
        if _is_possible(hostile, way, whole=False)
    ]


def _is_possible(hostile: HostileEngine, way: str, *, whole: bool) -> bool:
    """Return whether the provider is asked that way: Anthropic knows no n.

    Where the gateway looks for stop sequences itself it never asks for a whole answer.
    """
    if hostile.kind != "anthropic":
        return not (whole and "stop" in way)
    return way != "two choices"


def mutants(value: Any, first: int) -> Iterator[tuple[int, Kind, bytes]]:
    """Return streams in which one place of one event is another value, each with its number."""
    places: list[tuple[str, int, Path | None]] = [
        (stream, number, path)
        for stream, (_, events) in STREAMS.items()
        for number, event in enumerate(events)
        for path in [*spread(event), *([] if value is GONE else [None])]
    ]
    usual = {
        name: [event_of(kind, one) for one in events] for name, (kind, events) in STREAMS.items()
    }
    for at, (stream, number, path) in sampled(enumerate(places), 37, first):
        kind, events = STREAMS[stream]
        other = event_of(kind, value if path is None else put(events[number], path, value))
        sent = usual[stream]
        yield at, kind, stream_of(kind, [*sent[:number], other, *sent[number + 1 :]])


async def test_the_samples_are_answers() -> None:
    for kind, whole in WHOLES.values():
        for told in await ask_whole(HostileEngine(kind), orjson.dumps(whole), EVERY_WAY[:3]):
            assert isinstance(told, dict)
    for kind, events in STREAMS.values():
        for told in await ask_stream(HostileEngine(kind), wire(kind, events), EVERY_WAY[:3]):
            assert isinstance(told, bytes)


@pytest.mark.parametrize(("first", "value"), tuple(enumerate(HOSTILE.values())), ids=HOSTILE)
async def test_any_value_at_any_place_of_a_whole_answer(first: int, value: Any) -> None:
    for kind, sample in WHOLES.values():
        hostile = HostileEngine(kind)
        for number, path in sampled(enumerate(spread(sample)), 29, first):
            ways = (EVERY_WAY[0], EVERY_WAY[1 + number % (len(EVERY_WAY) - 1)])
            await ask_whole(hostile, dumped(put(sample, path, value)), ways)
        if value is not GONE:
            await ask_whole(hostile, dumped(value))


@pytest.mark.parametrize(("first", "value"), tuple(enumerate(HOSTILE.values())), ids=HOSTILE)
async def test_any_value_at_any_place_of_a_stream(first: int, value: Any) -> None:
    engines = {kind: HostileEngine(kind) for kind, _ in STREAMS.values()}
    for number, kind, text in mutants(value, first):
        await ask_stream(engines[kind], text, [EVERY_WAY[number % len(EVERY_WAY)]])


class _Any:
    """Hypothesis' strategies for the samples."""

    wholes = st.sampled_from(sorted(WHOLES))
    streams = st.sampled_from(sorted(STREAMS))
    ways = st.sampled_from(sorted(WAYS))
    hostile = st.sampled_from([value for value in HOSTILE.values() if value is not DEEPER]) | values


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.data())
async def test_several_values_at_several_places(data: st.DataObject) -> None:
    way = data.draw(_Any.ways)
    kind, sample = WHOLES[data.draw(_Any.wholes)]
    places = st.dictionaries(st.sampled_from(spread(sample)), _Any.hostile, max_size=4)
    await ask_whole(HostileEngine(kind), orjson.dumps(changed(sample, data.draw(places))), [way])
    kind, events = STREAMS[data.draw(_Any.streams)]
    order = data.draw(st.lists(st.integers(0, len(events) - 1), max_size=2 * len(events)))
    others = [
        changed(
            events[number],
            data.draw(
                st.dictionaries(st.sampled_from(spread(events[number])), _Any.hostile, max_size=2)
            ),
        )
        for number in order
    ]
    await ask_stream(HostileEngine(kind), wire(kind, others), [way])


RAW = {
    "nothing": b"",
    "no JSON": b"<html>",
    "half an object": b'{"choices":[{"index":0',
    "invalid UTF-8": b'{"choices":[{"index":0,"delta":{"content":"\xff\xfe"}}]}',
    "a lone surrogate": b'{"choices":[{"index":"\\ud800","delta":{"content":"x"}}]}',
    "NaN": b'{"choices":NaN}',
    "Infinity": b'{"usage":{"prompt_tokens":Infinity}}',
    "a number beyond floats": b'{"choices":[{"index":1e999}]}',
    "a number of many digits": b'{"choices":[{"index":' + b"9" * 5000 + b"}]}",
    "the same key again": b'{"choices":[],"choices":[{"index":0,"index":7}]}',
    "nested too deeply": b"[" * 100_000,
    "nested objects": b'{"a":' * 100_000,
    "an index over all bounds": b'{"choices":[{"index":2147483648,"delta":{"content":"x"}}]}',
    "NUL": b"\0" * 100,
    "a mark of byte order": b"\xef\xbb\xbf{}",
    "UTF-16": '{"choices":[]}'.encode("utf-16"),
    "an unended string": b'{"choices":["' + b"\\" * 99_999,
    "quotes": b'"\\' * 50_000,
}


@pytest.mark.thorough(one_in=2)
@pytest.mark.parametrize("raw", RAW.values(), ids=RAW)
@pytest.mark.parametrize("kind", ["openai", "anthropic", "gemini"])
async def test_what_is_no_answer(kind: Kind, raw: bytes) -> None:
    for told in await ask_whole(HostileEngine(kind), raw):
        assert isinstance(told, UpstreamError)
    for text in (b"data: " + raw + b"\n\n", b"event: error\ndata: " + raw + b"\n\n", raw):
        for told in await ask_stream(HostileEngine(kind), text):
            assert isinstance(told, GatewayError) or b"x" in told


@settings(max_examples=examples(25), deadline=None)
@given(st.binary(max_size=300), st.integers(0, 4000), st.sampled_from(sorted(STREAMS)))
async def test_any_bytes_in_the_middle_of_a_stream(junk: bytes, at: int, stream: str) -> None:
    kind, events = STREAMS[stream]
    text = wire(kind, events)
    await ask_stream(HostileEngine(kind), text[:at] + junk + text[at:], EVERY_WAY[:2])


@pytest.mark.thorough(one_in=4)
@pytest.mark.parametrize("kind", ["openai", "anthropic", "gemini"])
@pytest.mark.parametrize("status", [100, 199, 200, 204, 300, 304, 400, 401, 404, 413, 418, 429])
async def test_any_value_as_the_body_of_a_failure(kind: Kind, status: int) -> None:
    hostile = HostileEngine(kind)
    hostile.upstream.status = status
    hostile.upstream.headers["retry-after"] = "Mon, 01 Jan 99999 00:00:00 GMT"
    for value in HOSTILE.values():
        if value is not GONE:
            for body in (value, {"error": value}, {"error": {"message": value, "code": value}}):
                await ask_whole(hostile, dumped(body), EVERY_WAY[:1])


@pytest.mark.parametrize("status", [200, 400])
async def test_a_failure_inside_an_answer_shows_no_key(status: int) -> None:
    hostile = HostileEngine("openai")
    hostile.upstream.status = status
    body = orjson.dumps(
        {"error": {"message": "very%2Dsecret%2Dkey is wrong", "code": "invalid_request_error"}}
    )
    for told in await ask_whole(hostile, body):
        assert "secret" not in told.message
        assert told.http_status == 400


async def test_any_value_as_a_count_or_a_vector() -> None:
    hostile, other = HostileEngine("anthropic"), HostileEngine("openai")
    vectors = {"data": [{"index": 0, "embedding": [0.5]}, {"index": 1, "embedding": [1]}]}
    for value in HOSTILE.values():
        hostile.upstream.pieces = [dumped(put({"input_tokens": 3}, ("input_tokens",), value))]
        assert (await hostile.engine.count_tokens(asked(ANTHROPIC))).input_tokens < 2**53
        for path in spread(vectors):
            other.upstream.pieces = [dumped(put(vectors, path, value))]
            provider = other.engine.routes.providers["p"]
            try:
                made = await embed(provider, ["a", "b"], "m")
            except UpstreamError:
                continue
            assert len(made) == 2
            assert all(isinstance(number, float) for vector in made for number in vector)
