"""Pieces of a delta say what it says, whatever is done to an answer on its way."""

from collections.abc import Callable, Iterable, Sequence

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversation.v1.conversation_pb2 import Block, Thinking, ToolUse
from gateway.inference.v1.inference_pb2 import BlockStop, Event
from services.common.errors import GatewayError
from services.inference.request.thinking import Signer
from services.inference.stream.continuation import Continuation
from services.inference.stream.delivered import DeliveredPrefix
from services.inference.stream.prefill import EchoFilter
from services.inference.stream.replay import ReplayAligner
from services.inference.stream.sign_thinking import ThinkingSigner
from services.inference.stream.stop_sequences import StopSequenceFilter

Batch = Sequence[Event]
Transform = Callable[[Batch], Batch]
SAID = "ab ab"


def signing() -> Transform:
    return ThinkingSigner(Signer({"k": b"key"}, "k"), "m").feed


def stopping() -> Transform:
    return StopSequenceFilter(["bb", "b\n"]).feed


def sent() -> DeliveredPrefix:
    noted = DeliveredPrefix()
    noted.note([Event(block_start=Block(text="")), Event(text=SAID)])
    return noted


TRANSFORMS: dict[str, Callable[[], Transform]] = {
    "signing": signing,
    "stopping": stopping,
    "without echo": lambda: EchoFilter(SAID).feed,
    "continued": lambda: Continuation(sent()).feed,
    "repeated": lambda: ReplayAligner(sent(), "acme").feed,
}
BLOCKS = {
    "text": Block(text=""),
    "thinking": Block(thinking=Thinking()),
    "input": Block(tool_use=ToolUse(id="i", name="f")),
}


def of_pieces(kind: str, block: int, pieces: list[str]) -> Event:
    event = Event(block=block, pieces=[orjson.dumps(piece)[1:-1] for piece in pieces])
    setattr(event, kind, "".join(pieces))
    return event


@st.composite
def answers(draw: st.DrawFn) -> list[Batch]:
    """Return an answer that often repeats what was said, each delta a batch."""
    batches: list[Batch] = []
    for number in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["text", *BLOCKS]))
        batches.append([Event(block=number, block_start=BLOCKS[kind])])
        left = draw(st.sampled_from([SAID, ""])) + draw(st.text("ab \n", max_size=9))
        while left:
            size = draw(st.integers(1, len(left)))
            pieces, left = list(left[:size]), left[size:]
            batches.append([of_pieces(kind, number, pieces)])
        batches.append([Event(block=number, block_stop=BlockStop())])
    return batches


def passed(transform: Transform, batches: Iterable[Batch]) -> list[Event]:
    events: list[Event] = []
    try:
        for batch in batches:
            events += transform(batch)
    except GatewayError:
        pass  # an answer that says something else than the one before
    return events


@pytest.mark.parametrize("name", TRANSFORMS)
@given(batches=answers())
def test_pieces_that_pass_say_what_their_delta_says(name: str, batches: list[Batch]) -> None:
    for event in passed(TRANSFORMS[name](), batches):
        if event.pieces:
            piece_text = orjson.loads(b'"%b"' % b"".join(event.pieces))
            assert piece_text == (event.text or event.thinking or event.input)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_delta_that_passes_whole_keeps_its_pieces(name: str) -> None:
    batches = [
        [Event(block_start=Block(text=""))],
        [of_pieces("text", 0, [SAID, "."])],
        [of_pieces("text", 0, ["c", "d"])],
        [Event(block_stop=BlockStop())],
    ]
    last = passed(TRANSFORMS[name](), batches)[-2]
    assert (last.text, list(last.pieces)) == ("cd", [b"c", b"d"])
