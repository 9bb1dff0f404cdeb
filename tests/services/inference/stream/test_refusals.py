import pytest

from gateway.conversation.v1.conversation_pb2 import (
    FINISH_REASON_END_TURN,
    FINISH_REASON_REFUSAL,
    Block,
)
from gateway.inference.v1.inference_pb2 import Event, Finish
from services.inference.stream.refusals import RefusalFilter, RefusedAnswerError


@pytest.mark.parametrize(
    "event",
    [
        Event(block_start=Block(refusal="")),
        Event(block_start=Block(refusal="I refuse.")),
        Event(finish=Finish(reason=FINISH_REASON_REFUSAL)),
    ],
    ids=["begun", "whole", "finish"],
)
def test_a_refusal_is_noticed_at_its_first_event(event: Event) -> None:
    with pytest.raises(RefusedAnswerError):
        RefusalFilter("p").feed([Event(), event])


def test_other_answers_pass() -> None:
    end = Finish(reason=FINISH_REASON_END_TURN)
    batch = [Event(block_start=Block(text="I refuse.")), Event(finish=end)]
    assert RefusalFilter("p").feed(batch) is batch
