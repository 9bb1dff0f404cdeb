"""Answers that are observed on their way."""

from contextlib import aclosing

import pytest

from gateway.inference.v1.inference_pb2 import Event
from services.inference.stream.batches import Batches, OnBatch, observed
from services.inference.stream.filters import Batch

FIRST, SECOND, THIRD, LAST = ([Event(text=text)] for text in "abcd")


class Answer:
    """An answer that passes two batches on at once, and yields the others.

    Attributes:
        is_closed: whether nobody reads it any more.
    """

    def __init__(self) -> None:
        self.is_closed = False

    async def batches(self) -> Batches:
        try:
            on_batch = yield FIRST
            assert on_batch is not None
            assert not on_batch(SECOND)
            assert on_batch(THIRD)
            yield ()
            yield LAST
        finally:
            self.is_closed = True


class Seen:
    """A recorder of the calls for an answer, in order."""

    def __init__(self) -> None:
        self.done: list[tuple[str, Batch]] = []

    def observe(self, batch: Batch) -> None:
        self.done.append(("observed", batch))

    def complete(self) -> None:
        self.done.append(("complete", ()))

    def take(self, batch: Batch) -> bool:
        self.done.append(("taken", batch))
        return batch is THIRD


async def test_batches_that_are_passed_on_at_once_are_observed_first() -> None:
    seen = Seen()
    on_batch: OnBatch | None = None
    async with aclosing(observed(Answer().batches(), seen.observe, seen.complete)) as batches:
        with pytest.raises(StopAsyncIteration):
            while True:
                seen.done.append(("yielded", await batches.asend(on_batch)))
                on_batch = seen.take
    assert seen.done == [
        *(("observed", FIRST), ("yielded", FIRST)),
        *(("observed", SECOND), ("taken", SECOND)),
        *(("observed", THIRD), ("taken", THIRD), ("yielded", ())),
        *(("observed", LAST), ("yielded", LAST)),
        ("complete", ()),
    ]


async def test_an_answer_that_is_left_is_closed_and_not_complete() -> None:
    seen, answer = Seen(), Answer()
    async with aclosing(observed(answer.batches(), seen.observe, seen.complete)) as batches:
        assert await anext(batches) is FIRST
    assert answer.is_closed
    assert seen.done == [("observed", FIRST)]
