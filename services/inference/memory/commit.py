"""An answer that is remembered, on its way to the caller.

It is read in a task of its own, so that it is read to its end, and remembered, also where
the caller leaves after having begun to read it. The end goes out once Memory has committed
the turn: the caller's next request finds it there.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial

from gateway.inference.v1.inference_pb2 import Event
from services.common.errors import GatewayError
from services.inference.accumulator import Accumulator
from services.inference.attempt import Batch, Batches
from services.inference.content import is_content
from services.inference.memory.open_turn import OpenedTurn

log = logging.getLogger(__name__)


class AnswerCommitter:
    """All answers that are being told and remembered.

    Args:
        leave_drain_s: seconds that an answer may still take whose caller has left.
    """

    def __init__(self, leave_drain_s: float) -> None:
        self._leave_drain_s = leave_drain_s
        self._tasks: set[asyncio.Task[None]] = set()

    async def tell(self, taken: OpenedTurn, batches: Batches) -> Batches:
        """Return an answer as it comes, its end once it is remembered.

        Closing the iterator before there is anything of the answer ends it at the
        provider, later on it does not.

        Args:
            taken: the turn that the answer belongs to; it is ended.
            batches: the answer; it is closed.
        """
        telling = _CommittedAnswer(taken, batches)
        task = asyncio.create_task(telling.run())
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, telling))
        try:
            while (batch := await telling.heard()) is not None:
                yield batch
            await task
        finally:
            if telling.leave():
                loop = asyncio.get_running_loop()
                timer = loop.call_later(self._leave_drain_s, task.cancel)
                task.add_done_callback(lambda _: timer.cancel())
            else:
                task.cancel()

    async def settle(self, within_s: float) -> None:
        """Wait for the answers that are being told, so many seconds at most."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=within_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _ended(self, telling: "_CommittedAnswer", task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        telling.end()
        failure = TimeoutError() if task.cancelled() else task.exception()
        if failure is None or not telling.is_alone:
            return
        # Nobody else is going to tell.
        if isinstance(failure, GatewayError | TimeoutError):
            reason = failure.code if isinstance(failure, GatewayError) else "cancelled"
            log.warning("an answer was not remembered", extra={"reason": reason})
        else:
            log.error("unforeseen failure", exc_info=failure)


class _CommittedAnswer:
    """One answer between the task that reads it and the caller.

    Attributes:
        is_alone: whether the caller has left an answer that goes on.
    """

    def __init__(self, taken: OpenedTurn, batches: Batches) -> None:
        self.is_alone = False
        self._taken = taken
        self._batches = batches
        self._begun = False
        self._left = False
        self._ready: asyncio.Queue[Batch | None] = asyncio.Queue()
        # One batch waits at most: a caller that reads slowly holds the provider up.
        self._room = asyncio.Semaphore(1)

    async def run(self) -> None:
        """Read the answer to its end and have it remembered.

        Raises:
            GatewayError: it broke off, or was not remembered.
        """
        answer = Accumulator()
        held: list[Event] = []
        async with self._taken.ended_by_failure():
            async with aclosing(self._batches) as batches:
                async for batch in batches:
                    answer.add(batch)
                    if passed := _without_end(batch, held):
                        await self._tell(passed)
            await self._taken.remember(answer.response())
        if held:
            await self._tell(held)

    def end(self) -> None:
        """Set the memory free, however the task ended, and say so."""
        self._taken.turn.drop()
        self._ready.put_nowait(None)

    async def heard(self) -> Batch | None:
        """Return the next of the answer; None at its end, however it ended."""
        batch = await self._ready.get()
        self._room.release()
        self._begun = self._begun or (batch is not None and any(map(is_content, batch)))
        return batch

    def leave(self) -> bool:
        """Listen no more; return whether the answer is to be read to its end all the same."""
        self._left = True
        self._room.release()
        self.is_alone = self._begun
        return self._begun

    async def _tell(self, batch: Batch) -> None:
        if self._left:
            return
        await self._room.acquire()
        self._ready.put_nowait(batch)


def _without_end(batch: Batch, held: list[Event]) -> Sequence[Event]:
    """Return what may pass of a batch before the answer is remembered; hold back the rest.

    That is the end of each choice, and the last usage that comes after the first of them.
    """
    passed: list[Event] = []
    for event in batch:
        if event.HasField("finish"):
            held.append(event)
        elif held and event.HasField("usage"):
            if held[-1].HasField("usage"):
                held.pop()
            held.append(event)
        else:
            passed.append(event)
    return passed
