"""The part of an answer that has been delivered."""

import pytest

from gateway.conversation.v1.conversation_pb2 import FinishReason
from gateway.inference.v1.inference_pb2 import Event, Finish, Start
from services.inference.stream.delivered import DeliveredPrefix


@pytest.mark.parametrize("kind", ["text", "thinking", "refusal", "input"])
def test_native_events_are_compared_with_nothing(kind: str) -> None:
    delivered = DeliveredPrefix()
    content = Event(native=b"{}")
    setattr(content, kind, "a")
    delivered.note([Event(start=Start(id="r", model="m"), native=b"{}"), content])
    assert not (delivered.comparable or delivered.finished)
    delivered.note([Event(finish=Finish(reason=FinishReason.FINISH_REASON_END_TURN))])
    assert delivered.finished
