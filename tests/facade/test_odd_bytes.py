"""Answers whose bytes deviate from the standards, as some servers write them, for every caller."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import pytest
import pytest_asyncio

from tests.facade.odd_answers import PATHS, Asking, asking_gateway, sse, text_of
from tests.grid import each_row

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]

USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
COUNTED = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
BOM = b"\xef\xbb\xbf"
FIRST, SECOND, SMILE, LOST = "@first@", "@second@", "\U0001f600", "\ufffd"
# In the place of these words: halves of a character, and numbers that JSON has not.
ODD = {
    FIRST.encode(): b"\\ud83d",
    SECOND.encode(): b"\\ude00",
    b'"@nan@"': b"NaN",
    b'"@infinity@"': b"-Infinity",
}


def openai(texts: Sequence[str]) -> list[Json]:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    head["score"] = "@nan@"
    choices: list[Json] = [{"index": 0, "delta": {"content": text}} for text in texts]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    return [{**head, "choices": [one]} for one in choices] + [{**head, "choices": []}]


def anthropic(texts: Sequence[str]) -> list[Json]:
    deltas = [{"type": "text_delta", "text": text} for text in texts]
    block = {"type": "text", "text": ""}
    return [
        {"type": "message_start", "message": message([], None), "took": "@infinity@"},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": COUNTED},
        {"type": "message_stop"},
    ]


def gemini(texts: Sequence[str]) -> list[Json]:
    return [*(candidate([{"text": text}]) for text in texts), candidate([], finishReason="STOP")]


def responses(texts: Sequence[str]) -> list[Json]:
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    deltas = [{"type": "response.output_text.delta", **place, "delta": text} for text in texts]
    whole = response("".join(texts))
    begun = {**whole, "status": "in_progress", "output": []}
    (item,) = whole["output"]
    events = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        *deltas,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def message(content: Sequence[Json], reason: str | None = "end_turn") -> Json:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
    return {**head, "content": content, "stop_reason": reason, "usage": COUNTED}


def completion(said: Json, **choice: Any) -> Json:
    choice = {"index": 0, "message": said, "finish_reason": "stop", **choice}
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    return {**head, "choices": [choice], "usage": USAGE}


def candidate(parts: Sequence[Json], **fields: Any) -> Json:
    one = {"content": {"parts": parts}, "avgLogprobs": "@nan@", **fields}
    return {"candidates": [one], "usageMetadata": {"promptTokenCount": 1}}


def response(text: str) -> Json:
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m"}
    further = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": COUNTED}
    return {**head, **further, "status": "completed", "output": [{**item, "content": [part]}]}


STREAMS: Mapping[str, Callable[[Sequence[str]], list[Json]]] = {
    "openai": openai,
    "anthropic": anthropic,
    "gemini": gemini,
    "responses": responses,
}
WHOLE: Mapping[str, Callable[[str], Json]] = {
    "openai": lambda text: completion({"role": "assistant", "content": text}),
    "anthropic": lambda text: message([{"type": "text", "text": text}]),
    "gemini": lambda text: candidate([{"text": text}], finishReason="STOP"),
    "responses": response,
}
PAIRS = [(kind, path) for kind in STREAMS for path in PATHS if kind != "responses" or path == kind]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def asking(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Asking]:
    async with asking_gateway(tmp_path_factory.mktemp("gateway")) as one:
        yield one


def odd(data: bytes) -> bytes:
    """Return a text with what stands for its words."""
    for word, written in ODD.items():
        data = data.replace(word, written)
    return data


GAPS = [
    *(b"data:\n\n", b"data: \n\n", b"data:\r\n\r\n", b"data: \ndata: \n\n", b": hi\n\n"),
    *(b"event: ping\n\n", b"event: x\ndata:\n\n", b"id: 1\nretry: 5\n\n"),
]


@each_row("between", GAPS)
@pytest.mark.parametrize(("kind", "path"), PAIRS)
async def test_events_without_data(asking: Asking, kind: str, path: str, between: bytes) -> None:
    data = odd(sse(STREAMS[kind](["Hel", "lo"]), between))
    assert await asking.stream(kind, path, data) == "Hello"


@pytest.mark.parametrize(("kind", "path"), PAIRS)
async def test_byte_order_marks(asking: Asking, kind: str, path: str) -> None:
    data = odd(sse(STREAMS[kind](["Hel", "lo"])))
    assert await asking.stream(kind, path, BOM + data) == "Hello"
    assert await asking.stream(kind, path, data.replace(b"data: ", b"data: " + BOM)) == "Hello"
    answer = await asking.whole(kind, path, BOM + odd(json.dumps(WHOLE[kind]("Hello")).encode()))
    assert text_of(path, answer) == "Hello"


HALVES = [
    (["He" + FIRST, SECOND + "lo"], f"He{SMILE}lo"),
    (["He" + FIRST, "", SECOND], f"He{SMILE}"),
    (["a" + FIRST, SECOND + "b" + FIRST, SECOND + "c"], f"a{SMILE}b{SMILE}c"),
    (["He" + FIRST, "llo"], f"He{LOST}llo"),
    (["He", SECOND + "llo"], f"He{LOST}llo"),
]


@each_row(("texts", "expected"), HALVES)
@pytest.mark.parametrize(("kind", "path"), PAIRS)
async def test_halves_of_a_character(
    asking: Asking, kind: str, path: str, texts: list[str], expected: str
) -> None:
    assert await asking.stream(kind, path, odd(sse(STREAMS[kind](texts)))) == expected
    whole = await asking.whole(kind, path, odd(json.dumps(WHOLE[kind]("".join(texts))).encode()))
    assert text_of(path, whole) == expected


@each_row(
    ("choices", "expected"),
    [
        ([{"message": {"content": "Hello"}, "finish_reason": "stop"}], "Hello"),
        ([{"message": {"content": "Hel"}}, {"message": {"content": "lo"}}], "Hello"),
        ([{"delta": None, "message": {"content": "Hello"}}], "Hello"),
        # It repeats the deltas.
        (
            [{"delta": {"content": "Hello"}}, {"delta": {}, "message": {"content": "Hello"}}],
            "Hello",
        ),
        (
            [
                {"message": {"role": "assistant", "content": ""}},
                {"delta": {"content": "Hello"}},
                {"delta": {}, "message": {"role": "assistant", "content": "Hello"}},
            ],
            "Hello",
        ),
        # As in the older completions.
        ([{"text": "Hel"}, {"text": "lo", "finish_reason": "stop"}], "Hello"),
    ],
)
@pytest.mark.parametrize("path", PATHS)
async def test_chunks_without_a_delta(
    asking: Asking, path: str, choices: list[Json], expected: str
) -> None:
    data = sse([{"id": "c", "model": "m", "choices": [{"index": 0, **one}]} for one in choices])
    assert await asking.stream("openai", path, data) == expected


@pytest.mark.parametrize("path", PATHS)
async def test_a_whole_answer_of_the_older_completions(asking: Asking, path: str) -> None:
    data = json.dumps(completion({}, text="Hello"))
    assert text_of(path, await asking.whole("openai", path, data.encode())) == "Hello"


@each_row("arguments", ['{"a":NaN}', '{"a":null}'])
async def test_arguments_with_odd_numbers_are_an_object(asking: Asking, arguments: str) -> None:
    function = {"name": "f", "arguments": arguments}
    call = {"id": "call_1", "type": "function", "function": function}
    data = json.dumps(completion({"content": None, "tool_calls": [call]}))
    answer = await asking.whole("openai", "messages", data.encode())
    assert answer["content"][0]["input"] == {"a": None}


async def test_arguments_with_half_a_character_are_an_object(asking: Asking) -> None:
    function = {"name": "f", "arguments": '{"a":"x\\ud83d","n":123456789012345678901}'}
    call = {"id": "call_1", "type": "function", "function": function}
    data = json.dumps(completion({"content": None, "tool_calls": [call]}))
    answer = await asking.whole("openai", "messages", data.encode())
    assert answer["content"][0]["input"] == {"a": f"x{LOST}", "n": 123456789012345678901}


@each_row(
    ("part", "name"),
    [
        ({"fileData": {"fileUri": "https://x.example/y"}}, "fileData"),
        ({"inlineData": {"mimeType": "audio/wav", "data": "AAE="}}, "audio"),
        ({"weird": {"a": 1}}, "weird"),
    ],
)
async def test_a_response_of_unknown_parts_is_not_empty(
    asking: Asking, part: Json, name: str
) -> None:
    note = f"[The model answered with {name}, which this endpoint cannot show.]"
    answer = candidate([part], finishReason="STOP")
    whole = await asking.whole("gemini", "responses", odd(json.dumps(answer).encode()))
    assert text_of("responses", whole) == note
    assert await asking.stream("gemini", "responses", odd(sse([answer]))) == note
    spoken = candidate([part, {"text": "Hello"}], finishReason="STOP")
    assert await asking.stream("gemini", "responses", odd(sse([spoken]))) == "Hello"
