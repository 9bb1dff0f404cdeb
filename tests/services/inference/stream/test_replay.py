"""Replayed answers: the caller gets what the delivered part lacks, once."""

from collections.abc import Sequence

import pytest

from gateway.conversation.v1.conversation_pb2 import Block, FinishReason, Thinking, ToolUse
from gateway.inference.v1.inference_pb2 import BlockStop, Event, Finish, Start
from services.inference.stream.delivered import DeliveredPrefix
from services.inference.stream.replay import DivergedError, ReplayAligner
from tests.grid import each_row

START = Event(start=Start(id="r", model="m"))
SIGNATURE = Event(signature="s")
STOP = Event(block_stop=BlockStop())
THOUGHT = [Event(block_start=Block(thinking=Thinking())), Event(thinking="h"), Event(thinking="m")]
REDACTED = Event(block_start=Block(redacted_thinking="ab"))
ANSWER = [
    START,
    *(*THOUGHT, SIGNATURE, STOP),
    Event(block=1, block_start=Block(text="")),
    *(Event(block=1, text="so"), Event(block=1, text=" it is")),
    Event(block=1, block_stop=BlockStop()),
    Event(block=2, block_start=Block(tool_use=ToolUse(id="c", name="f"))),
    *(Event(block=2, input='{"a'), Event(block=2, input='":1}')),
    Event(block=2, block_stop=BlockStop()),
    Event(finish=Finish(reason=FinishReason.FINISH_REASON_TOOL_USE)),
]


def replayed(delivered: Sequence[Event], answer: Sequence[Event]) -> list[Event]:
    """Return what a caller gets of an answer after a delivered part."""
    prefix = DeliveredPrefix()
    prefix.note(delivered)
    return ReplayAligner(prefix, "p").feed(list(answer))


@each_row("count", range(1, len(ANSWER)))
def test_the_same_answer_goes_on_where_it_broke_off(count: int) -> None:
    assert replayed(ANSWER[:count], ANSWER) == ANSWER[count:]


def test_no_signature_follows_the_end_of_a_block() -> None:
    unsigned = [START, *THOUGHT, STOP]
    assert replayed(unsigned, [START, *THOUGHT, SIGNATURE, STOP]) == []


def test_a_delivered_signature_stays_the_only_one() -> None:
    signed = [START, *THOUGHT, SIGNATURE]
    assert replayed(signed, [START, *THOUGHT, Event(signature="other"), STOP]) == [STOP]


def test_a_block_that_ended_is_not_continued() -> None:
    with pytest.raises(DivergedError):
        replayed([START, *THOUGHT, STOP], [START, *THOUGHT, Event(thinking="m")])


def test_a_block_without_deltas_is_not_continued() -> None:
    longer = Event(block_start=Block(redacted_thinking="abc"))
    with pytest.raises(DivergedError):
        replayed([START, REDACTED], [START, longer])
    assert replayed([START, REDACTED], [START, REDACTED, STOP]) == [STOP]


def test_a_shorter_block_is_another_answer() -> None:
    with pytest.raises(DivergedError):
        replayed([START, *THOUGHT], [START, *THOUGHT[:2], STOP])
