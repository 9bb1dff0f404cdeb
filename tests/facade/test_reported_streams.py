"""Streams as public reports about servers and proxies have them: calls, blocks, ends and usage."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import pytest_asyncio

from tests.facade.odd_answers import Asking, asking_gateway, sse
from tests.grid import each_row

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]

CALLERS = pytest.mark.parametrize("path", ["chat", "messages"])
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
ONE: list[Any] = [("f", {"p": "a"})]
TWO: list[Any] = [*ONE, ("f", {"p": "b"})]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def asking(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Asking]:
    async with asking_gateway(tmp_path_factory.mktemp("gateway")) as one:
        yield one


def chunk(delta: Json, reason: str | None = None, **fields: Any) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "c", "created": 1, "model": "m", "choices": [choice], **fields}


def piece(arguments: str | None = None, **fields: Any) -> Json:
    """Return a chunk with a piece of a call; `name` is in its function, and its index is 0."""
    function = {"name": fields.pop("name")} if "name" in fields else {}
    if arguments is not None:
        function["arguments"] = arguments
    return chunk({"tool_calls": [{"index": 0, "function": function, **fields}]})


def ended(*chunks: Json, reason: str = "tool_calls", **fields: Any) -> bytes:
    return sse([*chunks, chunk({}, reason, **fields)])


async def received(asking: Asking, kind: str, path: str, data: bytes) -> tuple[list[Any], str, str]:
    """Return the calls with their arguments, the text and the finish reason."""
    calls: dict[int, list[str]] = {}
    text, reason = "", ""
    for event in await asking.events(kind, path, data):
        assert "error" not in event, event
        if path == "chat":
            for choice in event["choices"]:
                text += choice["delta"].get("content") or ""
                reason = choice["finish_reason"] or reason
                for call in choice["delta"].get("tool_calls", ()):
                    if "id" in call:
                        calls[call["index"]] = [call["function"]["name"], "", call["id"]]
                    calls[call["index"]][1] += call["function"]["arguments"]
        elif event["type"] == "content_block_start":
            assert event["index"] == len(calls) + bool(text)
            if event["content_block"]["type"] == "tool_use":
                block = event["content_block"]
                calls[event["index"]] = [block["name"], "", block["id"]]
        elif event["type"] == "content_block_delta":
            text += event["delta"].get("text", "")
            if "partial_json" in event["delta"]:
                calls[event["index"]][1] += event["delta"]["partial_json"]
        elif event["type"] == "message_delta":
            reason = event["delta"]["stop_reason"]
    ids = [call_id for _, _, call_id in calls.values()]
    assert all(ids) and len(set(ids)) == len(ids)
    # Clients take the input of a call without deltas from its start: an empty object.
    return (
        [(name, json.loads(written or "{}")) for name, written, _ in calls.values()],
        text,
        reason,
    )


WHOLE = [piece('{"p":"a"}', id="a", name="f"), piece('{"p":"b"}', id="b", name="f")]
NUMBERED = [piece('{"p":"a"}', name="f"), piece('{"p":"b"}', name="f", index=1)]


@each_row(
    ("chunks", "expected"),
    [
        # The same number, of whole calls and in pieces.
        (WHOLE, TWO),
        ([piece("", id="a", name="f"), piece('{"p":"a"}'), WHOLE[1]], TWO),
        # Without numbers, and numbers that do not begin at 0.
        ([piece('{"p":"a"}', id="a", name="f", index=None), WHOLE[1]], TWO),
        ([piece('{"p":"a"}', id="a", name="f", index=1)], ONE),
        # Pieces of two calls in turn.
        (
            [
                *(piece('{"p":', id="a", name="f"), piece('{"p":', id="b", name="f", index=1)),
                *(piece('"a"}'), piece('"b"}', index=1)),
            ],
            TWO,
        ),
        # The name, or everything, with each piece.
        ([piece("", id="a", name="f"), piece('{"p":', name="f"), piece('"a"}', name="f")], ONE),
        ([piece(one, id="a", name="f", type="function") for one in ("", '{"p":', '"a"}')], ONE),
        # Empty and null ids and names.
        ([piece('{"p":', id="a", name="f"), piece('"a"}', id="", name="")], ONE),
        ([piece('{"p":', id="a", name="f"), piece('"a"}', id=None, name=None)], ONE),
        # No ids, a late one.
        (NUMBERED, TWO),
        ([piece('{"p":', name="f"), piece('"a"}', id="a")], ONE),
        # Empty arguments before the others.
        ([piece("{}", id="a", name="f"), piece('{"p":"a"}')], ONE),
        ([piece("{}", id="a", name="f"), piece('{"p":'), piece('"a"}')], ONE),
        # Calls without arguments.
        ([piece("{}", id="a", name="f")], [("f", {})]),
        ([piece("{}", id=one, name="f") for one in "ab"], [("f", {}), ("f", {})]),
        ([piece("{}", id="a", name="f"), chunk({"content": "Well."})], [("f", {})]),
        ([piece("", id="a", name="f")], [("f", {})]),
        ([piece(id="a", name="f")], [("f", {})]),
        # Parsed arguments.
        (
            [
                chunk(
                    {
                        "tool_calls": [
                            {"id": "a", "function": {"name": "f", "arguments": {"p": "a"}}}
                        ]
                    }
                )
            ],
            ONE,
        ),
    ],
)
@CALLERS
async def test_calls_keep_their_identity(
    asking: Asking, path: str, chunks: list[Json], expected: list[Any]
) -> None:
    calls, _, reason = await received(asking, "openai", path, ended(*chunks))
    assert calls == expected
    assert reason == ("tool_calls" if path == "chat" else "tool_use")


@each_row("reason", ["stop", "end_turn", "STOP", "eos", "COMPLETE"])
async def test_a_call_with_another_end_is_a_call(asking: Asking, reason: str) -> None:
    said = chunk({"content": ""}, reason)
    calls, _, seen = await received(asking, "openai", "messages", sse([WHOLE[0], said]))
    assert (calls, seen) == (ONE, "tool_use")


@each_row(
    "reason",
    ["abort", "cancelled", "function_call_filter: MALFORMED_FUNCTION_CALL", "network_error"],
)
@CALLERS
async def test_an_end_that_is_a_failure_fails(asking: Asking, path: str, reason: str) -> None:
    data = sse([chunk({"content": "Hello"}), chunk({}, reason)])
    assert await asking.fails("openai", path, data)


@each_row("reason", ["content-filter", "content_filter: SAFETY", "sensitive", "RECITATION"])
async def test_an_end_by_a_filter_is_a_refusal(asking: Asking, reason: str) -> None:
    data = sse([chunk({"content": "Hello"}), chunk({}, reason)])
    _, _, seen = await received(asking, "openai", "messages", data)
    assert seen == "refusal"


TEXT = {"type": "text", "text": ""}


def block(index: int, delta_index: int, stop_index: int | None, text: str = "Hello") -> list[Json]:
    """Return a block of text with the numbers of its events."""
    delta = {"type": "text_delta", "text": text}
    stop = {"type": "content_block_stop", "index": stop_index}
    return [
        {"type": "content_block_start", "index": index, "content_block": TEXT},
        {"type": "content_block_delta", "index": delta_index, "delta": delta},
        *([stop] if stop_index is not None else []),
    ]


def message(*events: Json, start: Any = None, end: Any = None, **delta: Any) -> bytes:
    """Return a stream of Anthropic; `start` and `end` are the usage there."""
    begun: Json = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
    begun |= {"content": [], "stop_reason": None, "usage": start}
    last: Json = {"type": "message_delta", "delta": {"stop_reason": "end_turn", **delta}}
    if end is not None:
        last["usage"] = end
    return sse(
        [{"type": "message_start", "message": begun}, *events, last, {"type": "message_stop"}]
    )


COUNTED = {"input_tokens": 10, "output_tokens": 5}
STRAY_STOP = {"type": "content_block_stop", "index": 7}


@each_row(
    ("events", "expected"),
    [
        # Anthropic's code execution numbered the deltas of a block otherwise than its start.
        (block(2, 3, 3), "Hello"),
        (block(2, 3, 2), "Hello"),
        # The same number for two blocks; numbers with gaps.
        ([*block(0, 0, 0, "Hel"), *block(0, 0, 0, "lo")], "Hello"),
        ([*block(0, 0, 0, "Hel"), *block(2, 2, 2, "lo")], "Hello"),
        # A block that is not ended, and one that is ended by the next one, or twice.
        (block(0, 0, None), "Hello"),
        ([*block(0, 0, None, "Hel"), *block(1, 1, 1, "lo"), STRAY_STOP], "Hello"),
        ([*block(0, 0, None, "Hel"), *block(1, 1, 0, "lo")], "Hello"),
        # Without a start.
        (block(0, 0, 0)[1:], "Hello"),
    ],
)
@CALLERS
async def test_blocks_of_anthropic_with_odd_numbers(
    asking: Asking, path: str, events: list[Json], expected: str
) -> None:
    data = message(*events, start=COUNTED, end=COUNTED)
    assert await asking.stream("anthropic", path, data) == expected


def call(index: int, used: Json, *pieces: str, id: str = "t") -> list[Json]:
    """Return the events of a call, with its input at the start and in deltas."""
    block = {"type": "tool_use", "id": id, "name": "f", "input": used}
    deltas = [{"type": "input_json_delta", "partial_json": one} for one in pieces]
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": one} for one in deltas),
        {"type": "content_block_stop", "index": index},
    ]


@each_row(
    ("events", "expected"),
    [
        # The input at the start, or there and again in deltas.
        (call(0, {"p": "a"}), ONE),
        (call(0, {"p": "a"}, '{"p":', '"a"}'), ONE),
        (call(0, {}), [("f", {})]),
        # Two calls with one id.
        ([*call(0, {"p": "a"}), *call(1, {}, '{"p":"b"}')], TWO),
    ],
)
@CALLERS
async def test_calls_of_anthropic(
    asking: Asking, path: str, events: list[Json], expected: list[Any]
) -> None:
    data = message(*events, start=COUNTED, end=COUNTED)
    calls, _, reason = await received(asking, "anthropic", path, data)
    assert calls == expected
    # For callers of the same dialect the reason stays the server's.
    assert reason == ("tool_calls" if path == "chat" else "end_turn")


async def test_arguments_of_no_open_call_fail(asking: Asking) -> None:
    first, second = (call(index, {}, id=f"t{index}")[0] for index in (1, 2))
    delta = {"type": "input_json_delta", "partial_json": "{}"}
    late = {"type": "content_block_delta", "index": 1, "delta": delta}
    data = message(*block(0, 0, 0), first, second, late)
    assert await asking.fails("anthropic", "chat", data)


async def usage(asking: Asking, kind: str, path: str, data: bytes) -> tuple[int, int, int]:
    """Return the tokens of the input, of the output, and those of the input that were cached."""
    fields = {"stream_options": {"include_usage": True}} if path == "chat" else {}
    events = await asking.events(kind, path, data, **fields)
    if path == "chat":
        told = events[-1]["usage"]
        cached = told["prompt_tokens_details"]["cached_tokens"]
        return told["prompt_tokens"], told["completion_tokens"], cached
    (told,) = (event["usage"] for event in events if event["type"] == "message_delta")
    cached = told["cache_read_input_tokens"]
    return told["input_tokens"] + cached, told["output_tokens"], cached


HELLO = chunk({"content": "Hello"})


@each_row(
    ("data", "expected"),
    [
        # Cumulative with each chunk, and zeros at the end.
        (ended({**HELLO, "usage": {**USAGE, "completion_tokens": 1}}, usage=USAGE), (10, 5, 0)),
        (ended({**HELLO, "usage": USAGE}, usage=dict.fromkeys(USAGE, 0)), (10, 5, 0)),
        # Where caches are reported.
        (ended(HELLO, usage={**USAGE, "prompt_tokens_details": {"cached_tokens": 4}}), (10, 5, 4)),
        (ended(HELLO, usage={**USAGE, "prompt_cache_hit_tokens": 4}), (10, 5, 4)),
        (ended(HELLO, usage={**USAGE, "prompt_tokens_details": None}), (10, 5, 0)),
        # The names of responses, and no count of the output.
        (ended(HELLO, usage={"input_tokens": 10, "output_tokens": 5}), (10, 5, 0)),
        (ended(HELLO, usage={"prompt_tokens": 10, "total_tokens": 15}), (10, 5, 0)),
        # In a choice, and in a chunk whose choices are null.
        (
            sse([HELLO, {"choices": [{**chunk({}, "stop")["choices"][0], "usage": USAGE}]}]),
            (10, 5, 0),
        ),
        (sse([HELLO, chunk({}, "stop"), {"choices": None, "usage": USAGE}]), (10, 5, 0)),
    ],
)
@CALLERS
async def test_usage_of_chats(
    asking: Asking, path: str, data: bytes, expected: tuple[int, int, int]
) -> None:
    assert await usage(asking, "openai", path, data) == expected


SAYS = block(0, 0, 0)
CACHED = {"input_tokens": 6, "cache_read_input_tokens": 4, "output_tokens": 5}
ZERO = {"input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 5}
NULLS = {"input_tokens": None, "cache_read_input_tokens": None, "output_tokens": 5}


@each_row(
    ("data", "expected"),
    [
        # Proxies know the input at the end alone; others repeat it as zero or null.
        (message(*SAYS, start={"input_tokens": 0, "output_tokens": 0}, end=CACHED), (10, 5, 4)),
        (message(*SAYS, start=CACHED, end=ZERO), (10, 5, 4)),
        (message(*SAYS, start=COUNTED, end=NULLS), (10, 5, 0)),
        (message(*SAYS, end=COUNTED), (10, 5, 0)),
        (message(*SAYS, start=COUNTED), (10, 5, 0)),
        # In the delta, as Anthropic's documentation once had it.
        (
            message(*SAYS, start={**COUNTED, "output_tokens": 1}, usage={"output_tokens": 5}),
            (10, 5, 0),
        ),
    ],
)
@CALLERS
async def test_usage_of_messages(
    asking: Asking, path: str, data: bytes, expected: tuple[int, int, int]
) -> None:
    assert await usage(asking, "anthropic", path, data) == expected


def candidate(*parts: Json, usage: Json | None = None, **fields: Any) -> Json:
    one = {"content": {"parts": parts}, **fields}
    return {"candidates": [one], **({"usageMetadata": usage} if usage else {})}


GEMINI: Sequence[tuple[list[Json], tuple[int, int, int]]] = [
    # Once at the beginning, thoughts alone, and in an event without a candidate.
    (
        [
            candidate({"text": "a"}, usage={"promptTokenCount": 10, "candidatesTokenCount": 5}),
            candidate(finishReason="STOP"),
        ],
        (10, 5, 0),
    ),
    (
        [
            candidate({"text": "a"}),
            candidate(finishReason="STOP", usage={"promptTokenCount": 10, "thoughtsTokenCount": 5}),
        ],
        (10, 5, 0),
    ),
    (
        [
            candidate({"text": "a"}, finishReason="STOP"),
            {
                "candidates": [],
                "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5},
            },
        ],
        (10, 5, 0),
    ),
    # The last one has no count of the output.
    (
        [
            candidate({"text": "a"}, usage={"promptTokenCount": 10, "candidatesTokenCount": 5}),
            candidate(finishReason="STOP", usage={"promptTokenCount": 10, "totalTokenCount": 15}),
        ],
        (10, 5, 0),
    ),
]


@each_row(("events", "expected"), GEMINI)
@CALLERS
async def test_usage_of_gemini(
    asking: Asking, path: str, events: list[Json], expected: tuple[int, int, int]
) -> None:
    assert await usage(asking, "gemini", path, sse(events)) == expected


@CALLERS
async def test_calls_of_gemini_in_chunks_of_their_own(asking: Asking, path: str) -> None:
    parts = [{"functionCall": {"name": name, "args": args}} for name, args in TWO]
    data = sse([candidate(parts[0]), candidate(parts[1], finishReason="STOP")])
    calls, _, reason = await received(asking, "gemini", path, data)
    assert calls == TWO and reason in ("tool_calls", "tool_use")
