"""Runs a plan: one turn after the other until one answers, and on if it breaks off.

A healthy plan costs no task. What fails before anything has gone out to the caller is
followed by the next step; what fails later is gone on with (`recovery`), or told.
"""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError, UpstreamError
from services.inference.adaptation.errors import AdaptationError
from services.inference.attempt import Batch, Batches
from services.inference.fallback.backoff import Uniform
from services.inference.fallback.failures import moves_on
from services.inference.fallback.hedge import Hedge, Spoken
from services.inference.fallback.ledger import Ledger, Record
from services.inference.fallback.plan import Plan, Step
from services.inference.fallback.recovery import Sent
from services.inference.fallback.turn import Asks, Bounds, Course, Opened, Turn, out_of_time


class Chain:
    """One run of a plan.

    Args:
        loop: the running event loop.
        plan: what may be tried.
        asks: makes the attempts.
        ledger: where they are written down.
        uniform: throws the dice for jitter.
        whole: whether the answer is wanted whole.
        bounds: what is left of the plan's, where a chain of the same answer ran before.

    Attributes:
        bounds: what is left of the plan's.
        serving: the step whose model answers, once one does.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        plan: Plan,
        asks: Asks,
        ledger: Ledger,
        uniform: Uniform,
        *,
        whole: bool,
        bounds: Bounds | None = None,
    ) -> None:
        self._plan = plan
        self._ledger = ledger
        self.bounds = bounds or Bounds(plan, loop.time())
        self.serving: Step | None = None
        self._records: list[Record] = []
        self._course = Course(loop, plan, asks, ledger, self.bounds, uniform, whole, self._records)
        self._sent: Sent | None = None
        self._failure: UpstreamError | None = None  # the last
        self._refusal: GatewayError | None = None  # the first

    async def whole(self) -> list[Batch]:
        """Return all batches of the answer.

        Raises:
            GatewayError: nothing of the plan answered; `attempts` tells what was tried.
        """
        return (await self._open()).head

    async def stream(self) -> Batches:
        """Return the answer as it comes; closing the iterator ends it at the provider.

        Raises:
            GatewayError: nothing of the plan answered, or the answer broke off.
        """
        opened = await self._open()
        sent = Sent() if self._plan.max_recovered is not None else None
        try:
            while True:
                try:
                    for batch in opened.head:
                        if sent is not None:
                            sent.note(batch)
                        yield batch
                    async for batch in self._within_bounds(opened):
                        if sent is not None:
                            sent.note(batch)
                        yield batch
                    opened.record.served()
                    return
                except UpstreamError as error:
                    if sent is not None and sent.finished:
                        opened.record.served()
                        return  # all that was missing is the usage
                    opened.record.failed(error)
                    if sent is None or error.limit:
                        # An answer of which there is too much is not gone on with.
                        raise self._with_attempts(error) from None
                    opened = await self._recover(opened, error, sent)
                except GatewayError as error:
                    opened.record.failed(error)
                    raise self._with_attempts(error) from None
        finally:
            await opened.close()

    async def _open(self) -> Opened:
        try:
            opened = await self._open_from(self._turn(0), _unheard)
        except GatewayError as error:
            raise self._verdict(error) from error.__cause__
        self.serving = opened.turn.step
        return opened

    async def _open_from(self, turn: Turn, spoken: Spoken) -> Opened:
        """Return the answer of the first turn, from one on, that has any."""
        while True:
            hedge = self._hedge(turn, spoken) if turn.is_hedged else None
            try:
                if turn.may_convert:
                    # Before its silence is measured.
                    await turn.adapt()
                if hedge is None:
                    return await turn.open(spoken)
                return await hedge.race(turn.open, partial(self._ends, turn))
            except GatewayError as error:
                if isinstance(error, UpstreamError):
                    self._failure = error
                elif self._refusal is None:
                    self._refusal = error
                if (hedge is not None and hedge.decided) or self._ends(turn, error):
                    raise
            turn = self._turn(turn.index + 1)

    def _turn(self, index: int) -> Turn:
        """Begin the turn of a step, or of the next whose model does not keep failing."""
        steps = self._plan.steps
        while index + 1 < len(steps) and not self._ledger.breakers.admits(steps[index].key):
            self._ledger.skip(steps[index])
            index += 1
        return Turn(self._course, index, self._sent)

    def _ends(self, turn: Turn, error: Exception) -> bool:
        """Return whether a turn's failure is the chain's."""
        if turn.is_last:
            return True
        if isinstance(error, UpstreamError):
            return not moves_on(error, turn.step.fail_on)
        if isinstance(error, AdaptationError):
            return False  # the next model may read the medium as it is
        if not isinstance(error, GatewayError):
            return True
        if error.reason == errors_pb2.REASON_INVALID_REQUEST:
            # What is wrong for one provider alone is the caller's mistake only where that
            # provider was the first choice.
            return self._failure is None
        # A step whose model cannot carry the request is left out.
        return error.reason != errors_pb2.REASON_UNSUPPORTED

    def _hedge(self, turn: Turn, spoken: Spoken) -> Hedge[Opened]:
        return Hedge(self._plan.hedge_after_s, partial(self._rival, turn.index + 1), spoken)

    def _rival(self, index: int, spoken: Spoken) -> Coroutine[Any, Any, Opened] | None:
        """Ask the next model beside a silent one, if there is one that does not keep failing."""
        if not any(self._ledger.breakers.admits(step.key) for step in self._plan.steps[index:]):
            return None
        self._ledger.metrics.hedges.inc()
        return self._open_from(self._turn(index), spoken)

    async def _recover(self, broken: Opened, error: UpstreamError, sent: Sent) -> Opened:
        """Go on with an answer that broke off after some of it went out.

        Raises:
            GatewayError: nobody could; it is the failure that broke the answer off.
        """
        self._sent = sent
        recoveries = self._ledger.metrics.recoveries
        try:
            if not sent.comparable or sent.size() > (self._plan.max_recovered or 0):
                raise error
            turn = broken.turn
            turn.renew(sent)
            if not await turn.retries(error):
                if self._ends(turn, error):
                    raise error
                turn = self._turn(turn.index + 1)
            opened = await self._open_from(turn, _unheard)
        except GatewayError as later:
            recoveries.labels("failed").inc()
            told = later if later.reason == errors_pb2.REASON_TIMEOUT else error
            raise self._with_attempts(told) from None
        recoveries.labels("recovered").inc()
        self.serving = opened.turn.step
        return opened

    def _within_bounds(self, opened: Opened) -> Batches:
        """Return what is still to come of a stream."""
        batches, deadline = opened.batches, self.bounds.deadline
        assert batches is not None, "it is no whole answer"
        return batches if deadline is None else _until(deadline, batches)

    def _verdict(self, error: GatewayError) -> GatewayError:
        """Return the failure to tell: a provider's, if one was asked, before a refusal of ours."""
        if not isinstance(error, UpstreamError) and error.reason != errors_pb2.REASON_TIMEOUT:
            error = self._failure or self._refusal or error
        return self._with_attempts(error)

    def _with_attempts(self, error: GatewayError) -> GatewayError:
        error.attempts = [
            record.attempt()
            for record in self._records
            if record.outcome != "served"
            # A model that cannot carry a request is told of only where others were tried.
            and (record.outcome != "unsupported" or len(self._records) > 1)
        ]
        return error


async def _until(deadline: float, batches: Batches) -> Batches:
    """Return batches until the time is over."""
    while True:
        try:
            async with asyncio.timeout_at(deadline):
                batch = await anext(batches)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise out_of_time() from None
        yield batch


def _unheard() -> None:
    """Nobody waits to hear that an answer begins."""
