"""Answers whose batches are written in the callback that receives them."""

from types import SimpleNamespace
from typing import Any, Self

from gateway.inference.v1.inference_pb2 import Event, GenerateRequest
from services.common.grpc.authentication import caller
from services.common.grpc.inprocess.context import CallContext
from services.inference.servicer import InferenceServicer
from services.inference.stream.batches import Batches
from services.inference.stream.filters import Batch

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


async def engine_stream(_: object) -> Batches:
    return answer()


class Limited:
    """A counter of the events of a caller with limits."""

    def __init__(self) -> None:
        self.done: list[object] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self.done.append(error)

    def add_events(self, batch: Batch) -> None:
        self.done.append(batch)


async def written(limits: tuple[object, ...], limiter: Any) -> list[Any]:
    """Return what is done with an answer to a caller with these limits."""
    engine: Any = SimpleNamespace(stream=engine_stream)
    context = Context()
    somebody: Any = SimpleNamespace(limits=limits)
    token = caller.set(somebody)
    try:
        responses = InferenceServicer(engine, limiter).StreamGenerate(GenerateRequest(), context)
        await context.write_all(responses)
    finally:
        caller.reset(token)
    return context.done


async def test_a_caller_who_is_full_is_waited_for_each_time() -> None:
    done = await written((), None)
    assert done == [FIRST, "drained", SECOND, "drained", THIRD, "drained"]


async def test_events_within_limits_are_counted_as_they_are_received() -> None:
    limited = Limited()

    async def begin(limits: object, request: object) -> Limited:
        return limited

    done = await written(("a limit",), SimpleNamespace(begin=begin))
    assert done == [FIRST, "drained", SECOND, "drained", THIRD, "drained"]
    assert limited.done == [FIRST, SECOND, THIRD, None]
