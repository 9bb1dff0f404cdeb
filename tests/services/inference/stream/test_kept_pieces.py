"""The pieces that are kept of a streamed answer take little more than the answer itself."""

import tracemalloc
from collections.abc import Callable, Iterator, Sequence

import pytest

from gateway.conversation.v1.conversation_pb2 import Block, FinishReason, Usage
from gateway.inference.v1.inference_pb2 import BlockStop, Event, Finish, Start
from services.inference.memory.commit import _without_end
from services.inference.request.thinking import Signer
from services.inference.stream.accumulator import Accumulator
from services.inference.stream.delivered import DeliveredPrefix
from services.inference.stream.pieces import join, keep
from services.inference.stream.prefill import EchoFilter
from services.inference.stream.sign_thinking import ThinkingSigner
from services.inference.stream.stop_sequences import StopSequenceFilter

PIECES = 100_000
KEPT = 30_000  # each makes an event, which takes its time
END = Finish(reason=FinishReason.FINISH_REASON_END_TURN)


def events(kind: str, piece: str) -> Iterator[list[Event]]:
    """Return the batches of an answer in many pieces of one kind."""
    block = Block(text="")
    if kind == "thinking":
        block = Block()
        block.thinking.SetInParent()
    yield [Event(start=Start(id="1", model="m")), Event(block_start=block)]
    for _ in range(KEPT):
        event = Event()
        setattr(event, kind, piece)
        yield [event]


def grown_mb(feed: Callable[[Sequence[Event]], object], batches: Iterator[list[Event]]) -> float:
    tracemalloc.start()
    try:
        for batch in batches:
            feed(batch)
        return tracemalloc.get_traced_memory()[0] / (1 << 20)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["text", "thinking"])
@pytest.mark.parametrize("keeper", ["accumulator", "recovery", "signatures"])
def test_pieces_take_as_much_as_they_say(keeper: str, kind: str) -> None:
    feeds: dict[str, Callable[[Sequence[Event]], object]] = {
        "accumulator": Accumulator().add,
        "recovery": DeliveredPrefix().note,
        "signatures": ThinkingSigner(Signer({"k": b"k" * 32}, "k"), "m").feed,
    }
    assert grown_mb(feeds[keeper], events(kind, "ab")) < 0.5


def test_partial_stop_sequences_hold_few_events_back() -> None:
    stops = StopSequenceFilter(["ab"])
    stops.feed([Event(block_start=Block(text=""))])
    passed = stops.feed([Event(text="a"), *[Event(text="")] * PIECES])
    assert len(passed) > PIECES // 2
    passed = stops.feed([Event(text="b"), Event(block_stop=BlockStop()), Event(finish=END)])
    assert passed[-1].HasField("finish")


def test_a_prefill_that_is_never_whole_holds_few_events_back() -> None:
    echo = EchoFilter("abc")
    out = list(echo.feed([Event(block_start=Block(text="")), Event(text="a")]))
    out += echo.feed([Event(text="")] * PIECES)
    out += echo.feed([Event(text="x")])
    assert len(out) == PIECES + 3
    assert "".join(event.text for event in out) == "ax"


def test_of_the_usage_at_the_end_the_last_is_held() -> None:
    held: list[Event] = []
    counts = [Event(usage=Usage(input_tokens=count)) for count in range(5)]
    assert list(_without_end([counts[0], Event(finish=END), *counts[1:]], held)) == [counts[0]]
    assert held == [Event(finish=END), counts[-1]]


def test_pieces_are_joined_now_and_then() -> None:
    pieces: list[str] = []
    for _ in range(10_000):
        keep(pieces, "ab")
    assert len(pieces) < 5_000
    assert "".join(pieces) == "ab" * 10_000
    many = ["x"] * 5_000
    join(many)
    assert many == ["x" * 5_000]
