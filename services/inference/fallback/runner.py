"""Runs a fallback plan: tries one step after the other until a model answers.

A failure before anything was sent to the caller leads to the next step. A later failure is
recovered from (`_recover`) or raised.
"""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any

from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import GenerateResponse
from services.common.errors import GatewayError, UpstreamError
from services.common.messages.passthrough_answer import PassthroughAnswer
from services.inference.attempt import Attempt
from services.inference.fallback.hedging import Hedge, NotHedgedError
from services.inference.fallback.run import OnFirstContent, Run, StartedAnswer
from services.inference.fallback.step_runner import StepRunner
from services.inference.media import AdaptationError
from services.inference.plans.plan import Step
from services.inference.plans.policy import is_silence, leads_to_next_step, out_of_time
from services.inference.stream.accumulator import events_of, whole_of
from services.inference.stream.batches import Batches, OnBatch
from services.inference.stream.delivered import DeliveredPrefix
from services.inference.stream.filters import Batch


class FallbackRunner(Run):
    """Runs a plan, once.

    Attributes:
        serving: the step whose model answers; None until then.
    """

    # Class attributes, as nearly all runs begin and end with the answer of their first step.
    serving: Step | None = None
    _failure: UpstreamError | None = None  # the last
    _refusal: GatewayError | None = None  # the first

    async def whole_batches(self) -> list[Batch]:
        """Return all batches of a whole answer, which is not passed through; see `answer`."""
        started = await self._start()
        answer = started.answer
        if answer is None:
            return started.head
        assert not isinstance(answer, PassthroughAnswer), "the request takes no passthrough"
        return [events_of(answer)]

    async def answer(self) -> GenerateResponse | PassthroughAnswer:
        """Return a whole answer.

        Raises:
            GatewayError: no step answered; its `attempts` are those made.
        """
        started = await self._start()
        return whole_of(started.head) if started.answer is None else started.answer

    async def stream(self) -> Batches:
        """Yield the batches of a streamed answer; closing the iterator cancels the provider's call.

        Raises:
            GatewayError: no step answered, or the answer broke off.
        """
        delivered = self.delivering = DeliveredPrefix()
        started = await self._start()
        recovers, deadline = self.plan.max_recovered_characters is not None, self.budget.deadline
        on_batch: OnBatch | None = None
        try:
            while True:
                try:
                    for batch in started.head:
                        delivered.note(batch)
                        on_batch = yield batch
                    attempt = started.attempt
                    while not attempt.is_done:
                        pass_on = (
                            None
                            if on_batch is None
                            else partial(_pass_on, attempt, delivered, on_batch)
                        )
                        batches = started.batches
                        assert batches is not None, "it is no whole answer"
                        try:
                            read = await (
                                batches.asend(pass_on)
                                if deadline is None
                                else _until(deadline, batches, pass_on)
                            )
                        except StopAsyncIteration:
                            started.batches = None
                            break
                        batch = attempt.apply_filters(read)
                        if batch or not read:
                            delivered.note(batch)
                            on_batch = yield batch
                    started.record.served()
                    patience = attempt.call.patience
                    longest_s = 0.0 if patience is None else patience.longest_s
                    self.log.silences.add(started.record.step.key, longest_s)
                    return
                except UpstreamError as error:
                    has_finished = recovers and delivered.finished
                    if has_finished and error.status is None:
                        started.record.served()
                        return  # only the usage is missing
                    started.attempt.add_head(error)
                    started.record.failed(error)
                    if not recovers or error.limit or has_finished:
                        # An answer that exceeds a limit, or its own end, is not recovered.
                        raise self.with_attempts(error) from None
                    started.record.delivered_tokens = delivered.tokens()
                    started = await self._recover(started, error, delivered)
                except GatewayError as error:
                    started.record.failed(error)
                    raise self.with_attempts(error) from None
        finally:
            record = started.record
            if record.outcome != "served" or started.attempt.usage is None:
                record.delivered_tokens = delivered.tokens()
            try:
                if started.batches is not None:
                    await started.close()
            finally:
                self.on_end(self)

    async def _start(self) -> StartedAnswer:
        """Start an answer; the run ends here if that fails, and if the answer is a whole one.

        A first attempt that needs no preparation is sent directly.
        """
        plan = self.plan
        step = plan.steps[0]
        is_hedged = len(plan.steps) > 1 and plan.hedges(0)
        started: StartedAnswer | None = None
        runner: StepRunner | None = None
        try:
            direct, breakers = None, self.log.breakers
            is_admitted = not breakers.by_model or breakers.admits(step.key)
            if is_admitted and step.target.limits is None:
                direct = self.attempts.direct_attempt(step, stream=not self.whole or is_hedged)
            if direct is None:
                runner = self._step_runner(0)
            elif is_hedged:
                runner = StepRunner(self, 0, direct, is_hedged=True)
            else:
                # Most requests do not need a step runner.
                began = self.timers.loop.time()
                record, deadline = self.begin(step), self.deadline(step, began)
                try:
                    started = await self.start(0, direct, record, deadline)
                except GatewayError as error:
                    runner = StepRunner(
                        self, 0, direct, is_hedged=False, failure=error, began=began
                    )
            if runner is not None:
                started = await self._start_from(runner)
        except GatewayError as error:
            raise self._verdict(error) from error.__cause__
        finally:
            if self.whole or started is None:
                self.on_end(self)
        assert started is not None, "a runner starts an answer, or raises"
        self.serving = plan.steps[started.index]
        return started

    async def _start_from(
        self, runner: StepRunner, on_first_content: OnFirstContent | None = None
    ) -> StartedAnswer:
        """Run a step and those after it until one starts an answer; return that answer."""
        while True:
            hedge = self._hedge(runner, on_first_content) if runner.is_hedged else None
            try:
                if runner.may_convert:
                    # Before the hedging timer is started.
                    await runner.adapt()
                if hedge is None:
                    return await runner.start(on_first_content)
                return await hedge.race(runner.start, partial(self._ends, runner))
            except GatewayError as error:
                if isinstance(error, UpstreamError):
                    self._failure = error
                elif self._refusal is None:
                    self._refusal = error
                if (hedge is not None and hedge.decided) or self._ends(runner, error):
                    raise
                following = self._following(runner, error)
            runner = self._step_runner(following)

    def _step_runner(self, index: int) -> StepRunner:
        """Return the runner of the first step from `index` whose breaker admits calls.

        The last step is never skipped.
        """
        steps = self.plan.steps
        while index + 1 < len(steps) and not self.log.breakers.admits(steps[index].key):
            self.log.skip(steps[index])
            index += 1
        return StepRunner(self, index, is_hedged=self.plan.hedges(index))

    def _ends(self, runner: StepRunner, error: Exception) -> bool:
        """Return whether the failure of a step ends the run."""
        if self._following(runner, error) == len(self.plan.steps):
            return True
        if isinstance(error, UpstreamError):
            return not leads_to_next_step(error, runner.step.fail_on)
        if isinstance(error, AdaptationError):
            return False  # the next model may read the medium as it is
        if not isinstance(error, GatewayError):
            return True
        if error.reason == errors_pb2.REASON_INVALID_REQUEST:
            # A request that only one provider rejects is the caller's mistake only if no other
            # provider failed before.
            return self._failure is None
        # A step whose provider does not support the request is skipped.
        return error.reason != errors_pb2.REASON_UNSUPPORTED

    def _following(self, runner: StepRunner, error: Exception) -> int:
        """Return the index of the step after a failure.

        After a failure of the provider, the other deployments of the model have been tried already.
        After any other error another deployment may still support the request.
        """
        if isinstance(error, UpstreamError):
            return self.next_index(self.plan.next_model_index(runner.index))
        return self.next_index(runner.index + 1)

    def _hedge(
        self, runner: StepRunner, on_first_content: OnFirstContent | None
    ) -> Hedge[StartedAnswer]:
        start_rival = partial(self._start_rival, runner.index)
        return Hedge(self.timers, self.plan.hedge_after_s, start_rival, on_first_content)

    def _start_rival(
        self, silent: int, on_first_content: OnFirstContent
    ) -> Coroutine[Any, Any, StartedAnswer] | None:
        """Start the next step beside a silent one; None if no circuit breaker admits any."""
        index = self.plan.next_model_index(silent)
        if not any(self.log.breakers.admits(step.key) for step in self.plan.steps[index:]):
            return None
        return self._run_rival(index, on_first_content)

    async def _run_rival(self, index: int, on_first_content: OnFirstContent) -> StartedAnswer:
        """Run a step beside a silent one, if its caller's limits leave something for it.

        Raises:
            NotHedgedError: they do not.
        """
        if self.reserve_rival is not None:
            try:
                await self.reserve_rival()
            except GatewayError as error:
                raise NotHedgedError from error
        self.log.metrics.hedges.inc()
        return await self._start_from(self._step_runner(index), on_first_content)

    async def _recover(
        self, broken: StartedAnswer, error: UpstreamError, delivered: DeliveredPrefix
    ) -> StartedAnswer:
        """Continue an answer that broke off after a part of it was delivered.

        Raises:
            GatewayError: no step could continue it: `error`, or a timeout of the whole plan.
        """
        self.delivered = delivered
        if is_silence(error):
            self.stalled = broken.record.step.key
        recoveries = self.log.metrics.recoveries
        try:
            if not self.may_continue(delivered):
                raise error
            index = broken.index
            runner = StepRunner(self, index, is_hedged=self.plan.hedges(index))
            if not (runner.switch_deployment(error) or await runner.may_retry(error)):
                if self._ends(runner, error):
                    raise error
                runner = self._step_runner(self._following(runner, error))
            started = await self._start_from(runner)
        except GatewayError as later:
            recoveries.labels("failed").inc()
            reported = later if later.reason == errors_pb2.REASON_TIMEOUT else error
            raise self.with_attempts(reported) from None
        recoveries.labels("recovered").inc()
        self.announce_continuation(started)
        self.serving = self.plan.steps[started.index]
        return started

    def _verdict(self, error: GatewayError) -> GatewayError:
        """Return the error to raise when no step answered.

        A provider's failure and a timeout of the whole plan are raised as they are. Any other error
        gives way to the last failure of a provider, or else to the first other error.
        """
        if not isinstance(error, UpstreamError) and error.reason != errors_pb2.REASON_TIMEOUT:
            error = self._failure or self._refusal or error
        return self.with_attempts(error)


def _pass_on(attempt: Attempt, delivered: DeliveredPrefix, on_batch: OnBatch, read: Batch) -> bool:
    """Filter a batch of an attempt, and pass it to `on_batch`.

    Return True when `on_batch` does, or when the rest of the answer is not needed.
    """
    batch = attempt.apply_filters(read)
    delivered.note(batch)
    return (bool(batch) and on_batch(batch)) or attempt.is_done


async def _until(deadline: float, batches: Batches, on_batch: OnBatch | None) -> Batch:
    """Return the next batch; raise `out_of_time` at the deadline. See `Batches` for `on_batch`."""
    try:
        async with asyncio.timeout_at(deadline):
            return await batches.asend(on_batch)
    except TimeoutError:
        raise out_of_time() from None
