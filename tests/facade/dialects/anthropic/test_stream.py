"""Streams, read back by the official SDK's own decoder and accumulator."""

from typing import Any

import orjson
import pytest
from anthropic._streaming import SSEDecoder
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import Message, RawMessageStreamEvent
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from facade.dialects.anthropic import MessageStream, render_message
from gateway.conversation.v1 import conversation_pb2 as c
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1 import inference_pb2 as pb
from services.common.errors import GatewayError
from tests.facade.dialects.anthropic.answers import ANSWERS, batches, events

EVENT: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)


def decoded(stream: bytes) -> list[dict[str, Any]]:
    """Return the data of every event, whose name must be the data's type."""
    shown = []
    for sse in SSEDecoder().iter_bytes(iter([stream])):
        data = orjson.loads(sse.data)
        assert sse.event == data["type"]
        shown.append(data)
    return shown


def accumulated(shown: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the message that the SDK makes of events."""
    snapshot, buffers = None, {}
    for data in shown:
        snapshot = accumulate_event(
            event=EVENT.validate_python(data), current_snapshot=snapshot, json_bufs=buffers
        )
    return orjson.loads(snapshot.model_dump_json(exclude_none=True))


def streamed(*batch_list: list[pb.Event]) -> list[dict[str, Any]]:
    encoder = MessageStream("req_1")
    return decoded(b"".join(map(encoder.encode, batch_list)) + encoder.finish())


def kinds(shown: list[dict[str, Any]]) -> list[str]:
    return [data["type"].removeprefix("content_block_") for data in shown]


@given(
    name=st.sampled_from(sorted(ANSWERS)),
    piece=st.integers(1, 8),
    filled=st.booleans(),
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=4),
)
def test_a_stream_adds_up_to_the_whole_answer(name, piece, filled, sizes):
    whole = ANSWERS[name]
    shown = streamed(*batches(list(events(whole, piece=piece, filled=filled)), sizes))
    expected = Message.model_validate_json(render_message(whole))
    assert accumulated(shown) == orjson.loads(expected.model_dump_json(exclude_none=True))


@given(name=st.sampled_from(sorted(ANSWERS)), piece=st.integers(1, 8), filled=st.booleans())
def test_events_come_in_the_order_that_clients_expect(name, piece, filled):
    shown = streamed(list(events(ANSWERS[name], piece=piece, filled=filled)))
    assert kinds(shown)[0] == "message_start"
    assert kinds(shown)[-2:] == ["message_delta", "message_stop"]
    open_index, next_index = None, 0
    for data in shown[1:-2]:
        match data["type"]:
            case "content_block_start":
                assert (open_index, data["index"]) == (None, next_index)
                open_index, next_index = next_index, next_index + 1
            case "content_block_delta":
                assert data["index"] == open_index
            case "content_block_stop":
                assert data["index"] == open_index
                open_index = None
    assert open_index is None


def test_each_batch_is_sent_in_the_bytes_of_its_call():
    encoder = MessageStream("req_1")
    first = encoder.encode([pb.Event(start=pb.Start(id="a", model="m"))])
    assert kinds(decoded(first)) == ["message_start"]
    second = encoder.encode([pb.Event(block_start=c.Block(text="a")), pb.Event(text="b")])
    assert kinds(decoded(second)) == ["start", "delta", "delta"]
    assert encoder.encode([]) == b""


def test_blocks_start_empty_and_what_they_held_follows():
    blocks = [
        c.Block(text="a"),
        c.Block(thinking=c.Thinking(text="b", signature="c2ln")),
        c.Block(tool_use=c.ToolUse(id="t", name="n", input='{"a":1}')),
        c.Block(refusal="d"),
    ]
    batch = [pb.Event(start=pb.Start(id="a", model="m"))]
    for block in blocks:
        batch += [pb.Event(block_start=block), pb.Event(block_stop=pb.BlockStop())]
    batch.append(pb.Event(finish=pb.Finish(reason=c.FINISH_REASON_END_TURN)))
    shown = streamed(batch)
    starts = [data["content_block"] for data in shown if data["type"] == "content_block_start"]
    assert starts == [
        {"type": "text", "text": ""},
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "tool_use", "id": "t", "name": "n", "input": {}},
        {"type": "text", "text": ""},
    ]
    deltas = [data["delta"] for data in shown if data["type"] == "content_block_delta"]
    assert deltas == [
        {"type": "text_delta", "text": "a"},
        {"type": "thinking_delta", "thinking": "b"},
        {"type": "signature_delta", "signature": "c2ln"},
        {"type": "input_json_delta", "partial_json": '{"a":1}'},
        {"type": "text_delta", "text": "d"},
    ]
    assert shown[-2]["delta"]["stop_reason"] == "refusal"


def test_each_piece_of_a_delta_is_an_event_of_its_own():
    pieces = [b"a\\n", b"\\u00e9", "é".encode()]
    shown = streamed(
        [
            pb.Event(start=pb.Start(id="a", model="m")),
            pb.Event(block_start=c.Block(thinking=c.Thinking())),
            pb.Event(thinking="a\néé", pieces=pieces),
            pb.Event(block_stop=pb.BlockStop()),
            pb.Event(block_start=c.Block(text="")),
            pb.Event(text="a\néé", pieces=pieces),
            pb.Event(block_stop=pb.BlockStop()),
            pb.Event(block_start=c.Block(tool_use=c.ToolUse(id="t", name="n"))),
            pb.Event(input="a\néé", pieces=pieces),
            pb.Event(block_stop=pb.BlockStop()),
            pb.Event(finish=pb.Finish(reason=c.FINISH_REASON_END_TURN)),
        ]
    )
    said = [data["delta"] for data in shown if data["type"] == "content_block_delta"]
    words = ["a\n", "é", "é"]
    assert said == [
        *({"type": "thinking_delta", "thinking": word} for word in words),
        *({"type": "text_delta", "text": word} for word in words),
        *({"type": "input_json_delta", "partial_json": word} for word in words),
    ]
    assert kinds(shown)[1:4] == ["start", "delta", "delta"]


def test_tokens_that_came_with_the_start_open_the_stream():
    start = pb.Event(start=pb.Start(id="a", model="m"))
    early = pb.Event(usage=c.Usage(input_tokens=7, cache_read_input_tokens=2, output_tokens=1))
    late = pb.Event(usage=c.Usage(input_tokens=8, cache_read_input_tokens=2, output_tokens=9))
    finish = pb.Event(finish=pb.Finish(reason=c.FINISH_REASON_END_TURN))
    shown = streamed([start, early], [finish], [late])
    assert shown[0]["message"]["usage"] == {
        "input_tokens": 7,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 2,
        "output_tokens": 1,
    }
    assert shown[0]["message"] == {
        "id": "msg_a",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": shown[0]["message"]["usage"],
    }
    assert shown[1]["usage"] == {
        "input_tokens": 8,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 2,
        "output_tokens": 9,
    }


def test_further_fields_of_the_end_are_in_message_delta():
    own = b'{"stop_details":{"type":"refusal"},"container":null,"context_management":{"n":1}}'
    extra = c.Opaque(dialect=c.DIALECT_ANTHROPIC, json=own)
    finish = pb.Finish(reason=c.FINISH_REASON_REFUSAL, extra=extra)
    shown = streamed([pb.Event(start=pb.Start(id="a", model="m")), pb.Event(finish=finish)])
    assert shown[-2]["delta"] == {
        "stop_reason": "refusal",
        "stop_sequence": None,
        "stop_details": {"type": "refusal"},
        "container": None,
    }
    assert shown[-2]["context_management"] == {"n": 1}


def test_a_signature_comes_in_one_piece():
    batch = [
        pb.Event(start=pb.Start(id="a", model="m")),
        pb.Event(block_start=c.Block(thinking=c.Thinking())),
        pb.Event(signature="c2"),
        pb.Event(signature="ln"),
        pb.Event(block_stop=pb.BlockStop()),
        pb.Event(finish=pb.Finish(reason=c.FINISH_REASON_END_TURN)),
    ]
    deltas = [data["delta"] for data in streamed(batch) if data["type"] == "content_block_delta"]
    assert deltas == [{"type": "signature_delta", "signature": "c2ln"}]


def test_blocks_and_deltas_of_another_dialect_leave_no_gap():
    foreign = c.Opaque(dialect=c.DIALECT_OPENAI, json=b'{"type":"audio"}')
    batch = [
        pb.Event(start=pb.Start(id="a", model="m")),
        pb.Event(block_start=c.Block(opaque=foreign)),
        pb.Event(opaque=foreign),
        pb.Event(text="hidden"),
        pb.Event(input="hidden"),
        pb.Event(signature="hidden"),
        pb.Event(block_stop=pb.BlockStop()),
        pb.Event(block=1, block_start=c.Block(text="")),
        pb.Event(block=1, opaque=foreign),
        pb.Event(block=1, text="shown"),
        pb.Event(block=1, block_stop=pb.BlockStop()),
        pb.Event(finish=pb.Finish(reason=c.FINISH_REASON_END_TURN)),
    ]
    shown = streamed(batch)
    assert kinds(shown)[1:-2] == ["start", "delta", "stop"]
    assert accumulated(shown)["content"] == [{"type": "text", "text": "shown"}]


def test_deltas_without_a_name_here_are_put_back():
    citation = b'{"type":"citations_delta",\r\n"citation":{"n": 1.50}}'
    batch = [
        pb.Event(start=pb.Start(id="a", model="m")),
        pb.Event(block_start=c.Block(text="")),
        pb.Event(opaque=c.Opaque(dialect=c.DIALECT_ANTHROPIC, json=citation)),
        pb.Event(text="a"),
        pb.Event(block_stop=pb.BlockStop()),
    ]
    stream = MessageStream("req_1").encode(batch)
    assert b'"delta":{"type":"citations_delta",  "citation":{"n": 1.50}}}\n\n' in stream
    assert kinds(decoded(stream)) == ["message_start", "start", "delta", "delta", "stop"]


def test_an_end_is_never_invented():
    encoder = MessageStream("req_1")
    encoder.encode([pb.Event(start=pb.Start(id="a", model="m"))])
    (end,) = decoded(encoder.finish())
    assert (end["type"], end["error"]["type"]) == ("error", "api_error")


def test_a_broken_stream_ends_with_its_error():
    error = GatewayError(errors_pb2.REASON_UPSTREAM_CONNECTION, "the provider left")
    (shown,) = decoded(MessageStream("req_1").error(error))
    assert shown == {
        "type": "error",
        "error": {
            "type": "api_error",
            "message": "the provider left",
            "code": "upstream_connection",
        },
        "request_id": "req_1",
    }


def test_a_keepalive_is_a_ping():
    assert decoded(MessageStream("req_1").keepalive()) == [{"type": "ping"}]


@pytest.mark.parametrize("text", ["\n\ndata: x", "\r", "\u2028", "\x00", '"\\', "\U0001f600"])
def test_no_text_breaks_out_of_its_line(text):
    batch = [
        pb.Event(start=pb.Start(id="a", model="m")),
        pb.Event(block_start=c.Block(text="")),
        pb.Event(text=text),
        pb.Event(block_stop=pb.BlockStop()),
        pb.Event(finish=pb.Finish(reason=c.FINISH_REASON_END_TURN)),
    ]
    assert accumulated(streamed(batch))["content"] == [{"type": "text", "text": text}]


@pytest.mark.parametrize(
    ("dialect", "told", "shown"),
    [
        (c.DIALECT_ANTHROPIC, {"type": "brand_new", "x": [1]}, True),
        (c.DIALECT_OPENAI, {"type": "brand_new"}, False),
        (c.DIALECT_ANTHROPIC, {"type": "a\nb"}, False),
        (c.DIALECT_ANTHROPIC, {"x": 1}, False),
    ],
)
def test_events_without_a_name_stay_in_their_place(dialect, told, shown) -> None:
    unknown = pb.Event(unknown=c.Opaque(dialect=dialect, json=orjson.dumps(told)))
    whole = list(events(ANSWERS["text"], piece=2, filled=False))
    plain = streamed(whole)
    expected = [*plain[:-2], told, *plain[-2:]] if shown else plain
    assert streamed([*whole, unknown]) == expected
