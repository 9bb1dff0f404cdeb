"""Streaming of answers that are committed to a memory.

The answer is read in a task of its own, so that it is read to its end and committed even if the
caller leaves after its first content. The end of the answer is sent once Memory has committed
the turn, so that the caller's next request finds it there.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial

from gateway.inference.v1.inference_pb2 import Event
from services.common.errors import GatewayError
from services.inference.memory.turn_client import RequestTurn
from services.inference.stream.accumulator import Accumulator
from services.inference.stream.batches import Batches
from services.inference.stream.filters import Batch
from services.inference.stream.patience import has_content

log = logging.getLogger(__name__)


class AnswerCommitter:
    """Streams answers and commits them.

    Args:
        leave_drain_s: seconds for which an answer is still read after its caller has left.
    """

    def __init__(self, leave_drain_s: float) -> None:
        self._leave_drain_s = leave_drain_s
        self._tasks: set[asyncio.Task[None]] = set()

    async def stream(self, turn: RequestTurn, batches: Batches) -> Batches:
        """Yield an answer as it arrives, and its end once it is committed.

        Closing the iterator before the first content cancels the call of the provider; later
        the answer is still read and committed.

        Args:
            turn: the turn of the answer; ended here.
            batches: the answer; closed here.
        """
        answer = _CommittedAnswer(turn, batches)
        task = asyncio.create_task(answer.run())
        self._tasks.add(task)
        task.add_done_callback(partial(self._end, answer))
        try:
            while (batch := await answer.next_batch()) is not None:
                yield batch
            await task
        finally:
            if answer.leave():
                loop = asyncio.get_running_loop()
                timer = loop.call_later(self._leave_drain_s, task.cancel)
                task.add_done_callback(lambda _: timer.cancel())
            else:
                task.cancel()

    async def drain(self, timeout_s: float) -> None:
        """Wait for the answers that are still read; cancel those left after `timeout_s` seconds."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=timeout_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _end(self, answer: "_CommittedAnswer", task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        answer.end()
        failure = TimeoutError() if task.cancelled() else task.exception()
        if failure is None or not answer.is_abandoned:
            return
        # No caller is left to receive the failure.
        if isinstance(failure, GatewayError | TimeoutError):
            reason = failure.code if isinstance(failure, GatewayError) else "cancelled"
            log.warning("a turn could not be stored in the memory", extra={"reason": reason})
        else:
            log.error("unforeseen failure", exc_info=failure)


class _CommittedAnswer:
    """One answer between the task that reads it and the caller.

    Attributes:
        is_abandoned: whether the caller has left an answer that is still read.
    """

    def __init__(self, turn: RequestTurn, batches: Batches) -> None:
        self.is_abandoned = False
        self._turn = turn
        self._batches = batches
        self._has_content = False
        self._left = False
        self._ready: asyncio.Queue[Batch | None] = asyncio.Queue()
        # At most one batch is queued: a slow caller slows the provider down (backpressure).
        self._room = asyncio.Semaphore(1)

    async def run(self) -> None:
        """Read the answer to its end and commit it.

        Raises:
            GatewayError: the answer broke off, or was not committed.
        """
        answer = Accumulator()
        held: list[Event] = []
        async with self._turn.closing_on_failure():
            async with aclosing(self._batches) as batches:
                async for batch in batches:
                    answer.add(batch)
                    if passed := _without_end(batch, held):
                        await self._send(passed)
            await self._turn.commit(answer.response())
        if held:
            await self._send(held)

    def end(self) -> None:
        """Release the memory and end the stream, however the task ended."""
        self._turn.turn.drop()
        self._ready.put_nowait(None)

    async def next_batch(self) -> Batch | None:
        """Return the next batch of the answer; None at its end, however it ended."""
        batch = await self._ready.get()
        self._room.release()
        self._has_content = self._has_content or (batch is not None and has_content(batch))
        return batch

    def leave(self) -> bool:
        """Stop sending batches; return whether the answer is still to be read to its end."""
        self._left = True
        self._room.release()
        self.is_abandoned = self._has_content
        return self._has_content

    async def _send(self, batch: Batch) -> None:
        if self._left:
            return
        await self._room.acquire()
        self._ready.put_nowait(batch)


def _without_end(batch: Batch, held: list[Event]) -> Sequence[Event]:
    """Return the events of a batch that may be sent before the commit; append the others to `held`.

    Held back are the `finish` of each choice, and the last usage after the first `finish`.
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
