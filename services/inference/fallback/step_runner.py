"""Runs one fallback step: retries its model until the first content of an answer arrives."""

import asyncio
from collections.abc import Awaitable
from functools import cached_property

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError, UpstreamError
from services.common.process.timer_wheel import Deadline
from services.inference.allowances.admission import Permit
from services.inference.attempt import Attempt
from services.inference.balancing.deployment_limits import DeploymentLimitError
from services.inference.fallback.attempt_log import AttemptRecord
from services.inference.fallback.attempts import AttemptOptions
from services.inference.fallback.run import OnFirstContent, Run, StartedAnswer
from services.inference.learned.refusals import (
    MEDIA,
    PREFILL,
    UNSIGNED_THINKING,
    all_refused,
    new_refusals,
    output_bound,
    output_room,
    refuses_value,
)
from services.inference.learned.refused_paths import TOOL
from services.inference.media import AdaptationError
from services.inference.offload import offload
from services.inference.plans.policy import (
    LONGEST_DELAY_S,
    is_silence,
    is_transient,
    may_succeed_elsewhere,
    out_of_time,
    refuses_signatures,
)
from services.inference.providers.base import MissingEndpointError

# Number of times that a rejected request is changed and sent again. Servers that report one field
# at a time reject several requests in a row; later requests omit the fields learnt from those.
_MAX_CHANGES = 8


class StepRunner:
    """Runs one step of a plan.

    Attributes:
        index: index of the step in the plan.
        step: the step.
        is_hedged: whether the next step is started beside this one while it is silent.
    """

    # Class attributes, as nearly all steps answer at the first attempt and change none of these.
    _continues = False
    _changes = 0  # of the request after rejections
    _left_out: frozenset[str] = frozenset()  # besides the fields that the model rejects

    def __init__(
        self,
        run: Run,
        index: int,
        direct: Attempt | None = None,
        *,
        is_hedged: bool,
        failure: GatewayError | None = None,
        began: float | None = None,
    ) -> None:
        """Begin a step.

        Args:
            run: the run.
            index: index of the step in the plan.
            direct: the first attempt, if it needs no preparation.
            is_hedged: see the attribute.
            failure: the failure of `direct`, if it has been made.
            began: when the step began, by the loop's clock; now by default.
        """
        self.index = index
        self.step = run.plan.steps[index]
        self.is_hedged = is_hedged
        self._run = run
        self._began = run.timers.loop.time() if began is None else began
        self._direct = direct
        self._failure = failure

    @cached_property
    def _options(self) -> AttemptOptions:
        stream = not self._run.whole or self.is_hedged
        return AttemptOptions(stream, delivered=self._run.delivered)

    @property
    def is_last(self) -> bool:
        """Whether no step with another model follows."""
        plan = self._run.plan
        return plan.next_model_index(self.index) == len(plan.steps)

    async def start(self, on_first_content: OnFirstContent | None = None) -> StartedAnswer:
        """Call the model, with retries, until its first content; then call `on_first_content`.

        Raises:
            UpstreamError: the model failed and is not retried.
            GatewayError: the provider does not support the request, or the plan's time is over.
        """
        direct, self._direct = self._direct, None
        if direct is not None:
            failure, self._failure = self._failure, None
            if failure is None:
                try:
                    record = self._run.begin(self.step)
                    return await self._started(direct, record, on_first_content)
                except GatewayError as error:
                    failure = error
            self._options.refused_fields = direct.call.refused_fields
            await self._handle(failure)
        while True:
            try:
                return await self._attempt(on_first_content)
            except UpstreamError as error:
                await self._handle(error)

    @property
    def may_convert(self) -> bool:
        """Whether media may have to be converted before the model is called."""
        return self._direct is None and self._run.attempts.may_convert(self.step)

    async def adapt(self) -> None:
        """Convert the media that the model does not read, within the timeout of the step.

        Raises:
            AdaptationError: a medium cannot be converted.
            GatewayError: the plan's time is over.
        """
        run, step = self._run, self.step
        deadline = run.deadline(step, self._began)
        try:
            try:
                with Deadline(run.timers, deadline):
                    await run.attempts.adapt(step)
            except TimeoutError:
                if deadline == run.budget.deadline:
                    raise out_of_time() from None
                raise AdaptationError(
                    errors_pb2.REASON_UPSTREAM_TIMEOUT,
                    f"the media for {step.target.name} were not converted within the time limit; "
                    "send fewer or smaller media, or increase the step's timeout",
                ) from None
        except GatewayError as error:
            run.begin(step).refused(error)
            raise

    async def may_retry(self, error: UpstreamError) -> bool:
        """Wait for the retry delay after a failure; return False at once without a retry."""
        if not self._allows_retry(error):
            return False
        run = self._run
        retries = run.retries.get(self._retry_key, 0)
        delay = self.step.retries.delay(retries, run.uniform)
        index, asked = self._retried(error)
        delay = max(delay, asked)
        if run.timers.loop.time() + delay > self._latest_retry():
            return False
        run.retries[self._retry_key] = retries + 1
        run.budget.take_retry()
        await asyncio.sleep(delay)
        if index != self.index:
            self._move_to(index)
        return True

    def switch_deployment(self, error: UpstreamError) -> bool:
        """Switch to another deployment of the model after a failure; False if none is left.

        This is no retry: each free deployment is tried once before the first retry.
        """
        run = self._run
        if self.step.group is None or not may_succeed_elsewhere(error):
            return False
        run.tried |= {self.index}
        steps, balancer = run.plan.steps, run.log.balancer
        for index in run.plan.group_of(self.index):
            if index not in run.tried and balancer.is_free(steps[index]):
                self._move_to(index)
                return True
        return False

    def _move_to(self, index: int) -> None:
        """Continue with the step of another deployment of the model."""
        self.index = index
        self.step = self._run.plan.steps[index]
        self._continues = False

    @property
    def _retry_key(self) -> object:
        return self.index if self.step.group is None else self.step.group

    def _retried(self, error: UpstreamError) -> tuple[int, float]:
        """Return the index of the step to retry, and the minimum delay in seconds."""
        run = self._run
        if self.step.group is not None:
            # Start after the deployment that failed: it was called last.
            indexes = sorted(
                run.plan.group_of(self.index), key=lambda index: (index <= self.index, index)
            )
            steps = [run.plan.steps[index] for index in indexes]
            place, wait_s = run.log.balancer.first_free(steps)
            return indexes[place], wait_s
        # In mode `auto` a rate limited request is delayed even if the provider names no delay.
        asked = error.upstream_retry_after_s if run.plan.is_patient else error.retry_after_s
        return self.index, asked or 0

    async def _attempt(self, on_first_content: OnFirstContent | None) -> StartedAnswer:
        permit = await self._permit()
        record = self._run.begin(self.step)
        record.permit = permit
        try:
            attempt = await offload(self._make_attempt)
        except BaseException as error:
            record.ended_by(error)
            raise
        return await self._started(attempt, record, on_first_content)

    async def _permit(self) -> Permit | None:
        """Take a call from the limits of the step's deployment; None if it has none.

        Raises:
            DeploymentLimitError: a limit is reached.
            GatewayError: unavailable, the counts cannot be read.
        """
        run, target, tokens = self._run, self.step.target, 0
        if target.limits is None:
            return None
        if target.limits.count_tokens:
            tokens = await offload(run.attempts.reserved_tokens, self.step)
        return await run.log.balancer.limits.admit(target, tokens)

    def _started(
        self, attempt: Attempt, record: AttemptRecord, on_first_content: OnFirstContent | None
    ) -> Awaitable[StartedAnswer]:
        """Start an attempt, within the timeout of the step."""
        deadline = self._run.deadline(self.step, self._began)
        return self._run.start(self.index, attempt, record, deadline, on_first_content)

    def _make_attempt(self) -> Attempt:
        attempts = self._run.attempts
        refused = attempts.refused(self.step)
        if self._left_out:
            refused = all_refused(self.step.target.refuses, refused | self._left_out)
        self._options.refused_fields = refused
        attempt, self._continues = attempts.attempt(self.step, self._options)
        return attempt

    async def _handle(self, error: GatewayError) -> None:
        """Prepare the next attempt after a failure, and wait until it may be made.

        Raises:
            GatewayError: `error`, if there is no next attempt in this step.
        """
        if not isinstance(error, UpstreamError):
            raise error
        if self._changes < _MAX_CHANGES and self._changes_request(error):
            self._changes += 1
            if self.may_convert:
                await self.adapt()
        elif self.switch_deployment(error):
            if self.may_convert:
                await self.adapt()
        elif not await self.may_retry(error):
            raise error

    def _changes_request(self, error: UpstreamError) -> bool:
        """Return whether the next attempt omits what the model has rejected."""
        attempts, key = self._run.attempts, self.step.key
        if isinstance(error, MissingEndpointError):
            return True
        if self._continues and not is_transient(error):
            # That the model rejects a prefill must not hide the failure that led to it.
            attempts.learn_refusal(key, PREFILL)
            self._continues = False
            return True
        if (bound := output_bound(error)) and attempts.learn_output_bound(self.step, bound):
            return True
        room = output_room(error)
        if room and not 0 < self._options.output_room <= room:
            self._options.output_room = room
            return True
        if fields := new_refusals(error, self._options.refused_fields):
            if fields[0] in MEDIA and not attempts.converts(self.step, fields[0]):
                return False
            # The model may accept other values, and other tools.
            once = refuses_value(error)
            for field in fields:
                if once or field.startswith(TOOL):
                    self._left_out |= {field}
                else:
                    attempts.learn_refusal(key, field)
            return True
        if refuses_signatures(error) and not self._options.discards_thinking:
            self._options.discards_thinking = True
            attempts.learn_refusal(key, UNSIGNED_THINKING)
            return True
        return False

    def _allows_retry(self, error: UpstreamError) -> bool:
        run = self._run
        return (
            is_transient(error)
            and not is_silence(error)
            and not isinstance(error, DeploymentLimitError)
            and run.retries.get(self._retry_key, 0) < self.step.retries.most
            and run.budget.allows_retry
            and (self.is_last or self._is_admitted())
        )

    def _is_admitted(self) -> bool:
        """Return whether the circuit breaker of at least one of the model's deployments admits."""
        plan, breakers = self._run.plan, self._run.log.breakers
        indexes = plan.group_of(self.index)
        return any(breakers.admits(plan.steps[index].key) for index in indexes)

    def _latest_retry(self) -> float:
        run, plan = self._run, self._run.plan
        latest = run.deadline(self.step, self._began)
        if plan.is_patient:
            return latest
        # A caller who did not set `fallback` does not wait long; with hedging not beyond the
        # moment at which the next model would be called anyway.
        hedge_at = self._began + plan.hedge_after_s
        return min(latest, hedge_at if self.is_hedged else run.timers.loop.time() + LONGEST_DELAY_S)
