"""Answers whose batches are written in the callback that receives them."""

from types import SimpleNamespace
from typing import Any

from gateway.inference.v1.inference_pb2 import Event, GenerateRequest
from services.common.authentication import caller
from services.common.inprocess.context import CallContext
from services.inference.servicer import InferenceServicer
from services.inference.stream.batches import Batches

FIRST, SECOND, THIRD = ([Event(text=text)] for text in "abc")


class Context(CallContext):
    """A call whose caller wants each message to be waited for."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def send(self, message: Any) -> bool:
        self.done.append(message.events)
        return True

    async def drained(self) -> None:
        self.done.append("drained")


async def answer() -> Batches:
    take = yield FIRST
    assert take is not None
    assert take(SECOND)
    take = yield ()
    yield THIRD


async def test_a_caller_who_is_full_is_waited_for_each_time() -> None:
    async def stream(_: object) -> Batches:
        return answer()

    engine: Any = SimpleNamespace(stream=stream)
    limiter: Any = None
    context = Context()
    somebody: Any = SimpleNamespace(limits=())
    token = caller.set(somebody)
    try:
        responses = InferenceServicer(engine, limiter).StreamGenerate(GenerateRequest(), context)
        await context.write_all(responses)
    finally:
        caller.reset(token)
    assert context.done == [FIRST, "drained", SECOND, "drained", THIRD, "drained"]
