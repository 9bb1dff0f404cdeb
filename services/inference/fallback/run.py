"""One run of a fallback plan: the state that its steps share, and the start of an attempt."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from gateway.errors.v1 import errors_pb2
from gateway.errors.v1.errors_pb2 import Attempt as AttemptMessage
from gateway.inference.v1.inference_pb2 import Event, GenerateResponse
from services.common.errors import GatewayError, UpstreamError
from services.common.messages.deferred_call import DeferredCall
from services.common.messages.passthrough_answer import AnswerRoute, PassthroughAnswer
from services.common.process.telemetry.trace_context import current_trace
from services.common.process.timer_wheel import Deadline, TimerWheel
from services.common.text.tokens import estimate_bytes, estimate_tokens
from services.inference.attempt import Attempt
from services.inference.circuit_breaker import ModelKey, Uniform
from services.inference.fallback.attempt_log import AttemptLog, AttemptRecord, DeploymentRecord
from services.inference.fallback.attempts import AttemptFactory
from services.inference.plans.plan import Plan, Step
from services.inference.plans.policy import out_of_time
from services.inference.pricing.iterations import with_compactions
from services.inference.providers.failures import cut_off
from services.inference.stream.accumulator import Accumulator, whole_of
from services.inference.stream.batches import Batches
from services.inference.stream.delivered import DeliveredPrefix
from services.inference.stream.filters import Batch
from services.inference.stream.patience import Patience, has_content

# Called with a run when it has ended.
OnEnd = Callable[["Run"], None]
ReserveRival = Callable[[], Awaitable[None]]
# Called once, when the first content of an answer has arrived.
OnFirstContent = Callable[[], None]


class RetryBudget:
    """The remaining time and retries of a plan, shared by the runs of one request.

    Attributes:
        deadline: the deadline of the plan, by the loop's clock; None without a limit.
    """

    __slots__ = ("_retries", "deadline")

    def __init__(self, deadline: float | None, retries: int | None) -> None:
        """Return a budget with a deadline and a number of retries; None means no limit."""
        self.deadline = deadline
        self._retries = retries

    @property
    def allows_retry(self) -> bool:
        """Whether a retry is left."""
        return self._retries is None or self._retries > 0

    def take_retry(self) -> None:
        """Use a retry."""
        if self._retries is not None:
            self._retries -= 1


# Shared by all plans without limits; it is never decremented.
_UNLIMITED = RetryBudget(None, None)


def _full_budget(plan: Plan, loop: asyncio.AbstractEventLoop) -> RetryBudget:
    """Return the full budget of a plan that begins now."""
    deadline = None if plan.timeout_s is None else loop.time() + plan.timeout_s
    return RetryBudget(deadline, plan.max_retries)


@dataclass(slots=True)
class StartedAnswer:
    """An answer whose first content has arrived; a whole answer is complete.

    Attributes:
        index: index of the step in the plan.
        attempt: the attempt.
        record: the record of the attempt.
        head: the batches up to the first content.
        batches: the remaining batches; None after the last one, and for a whole answer that was not
            streamed.
        answer: the whole answer instead of batches, if it is passed through or was accumulated
            from a stream; else None.
    """

    index: int
    attempt: Attempt
    record: AttemptRecord
    head: list[Batch]
    batches: Batches | None = None
    answer: GenerateResponse | PassthroughAnswer | None = None

    async def close(self) -> None:
        """Cancel the provider's call, if it has not ended."""
        if self.record.outcome is None:
            self.record.cancelled()
        if self.batches is not None:
            await self.batches.aclose()


class Run:
    """One run of a plan.

    Attributes:
        timers: timers of the running event loop.
        parent: the trace context of the attempts' spans; None if no spans are recorded.
        plan: the plan.
        attempts: makes the attempts.
        log: records the attempts.
        uniform: random source for jitter.
        whole: whether a whole answer is returned instead of a stream.
        budget: the remaining time and retries.
        records: the records of all attempts, in order.
        delivering: the delivered part of the answer of a stream; None for a whole answer.
        delivered: the delivered part of an answer that broke off, or None.
        stalled: the model whose answer stopped; the answer is not continued by it.
        retries: number of retries by step index, or by the group of the step's deployments.
        tried: indexes of steps whose deployment has failed, for models with several.
        on_end: called once, when the run has ended.
        reserve_rival: reserves tokens and money for a second model that is called beside a silent
            one; raises GatewayError if a limit leaves nothing for it. None if nothing is reserved.
        deferred: takes the place of the HTTP requests, if a batch service makes them.
    """

    __slots__ = (
        *("attempts", "budget", "deferred", "delivered", "delivering", "log", "on_end", "parent"),
        *("plan", "records", "reserve_rival", "retries", "stalled", "timers", "tried"),
        *("uniform", "whole"),
    )

    def __init__(
        self,
        timers: TimerWheel,
        plan: Plan,
        attempts: AttemptFactory,
        log: AttemptLog,
        uniform: Uniform,
        on_end: OnEnd,
        *,
        whole: bool,
        budget: RetryBudget | None = None,
        reserve_rival: ReserveRival | None = None,
    ) -> None:
        """Begin a run, by default with the full budget of the plan."""
        self.timers = timers
        self.parent = None if log.spans is None else current_trace.get()
        self.plan = plan
        self.attempts = attempts
        self.log = log
        self.uniform = uniform
        self.whole = whole
        if budget is None:
            is_limited = plan.timeout_s is not None or plan.max_retries is not None
            budget = _full_budget(plan, timers.loop) if is_limited else _UNLIMITED
        self.budget = budget
        self.records: list[AttemptRecord] = []
        self.delivering: DeliveredPrefix | None = None
        self.delivered: DeliveredPrefix | None = None
        self.stalled: ModelKey | None = None
        self.retries: dict[object, int] = {}
        self.tried: frozenset[int] = frozenset()
        self.on_end = on_end
        self.reserve_rival = reserve_rival
        self.deferred: DeferredCall | None = None

    def begin(self, step: Step) -> AttemptRecord:
        """Begin an attempt at a step's model; return its record."""
        log, plan = self.log, self.plan
        span = None if log.spans is None else log.spans.begin(step, self.parent, plan.operation)
        if step.group is None:
            record = AttemptRecord(log, step, span)
        else:
            record = DeploymentRecord(log, step, span, plan.load_class)
        self.records.append(record)
        return record

    def deadline(self, step: Step, began: float) -> float:
        """Return the deadline of a step that began at `began`, by the loop's clock."""
        own, overall = began + step.timeout_s, self.budget.deadline
        return own if overall is None else min(own, overall)

    def next_index(self, index: int) -> int:
        """Return the index of the first step from `index` that may be run."""
        steps = self.plan.steps
        if self.stalled is not None:
            while index < len(steps) and steps[index].key == self.stalled:
                index += 1
        return index

    def may_continue(self, delivered: DeliveredPrefix) -> bool:
        """Return whether an answer of which this part was delivered may be continued."""
        most = self.plan.max_recovered_characters
        return most is not None and delivered.comparable and delivered.size() <= most

    def _prepare(self, index: int, attempt: Attempt) -> None:
        """Set who sends a call, and the silences after the first content that it is allowed.

        Raises:
            GatewayError: unsupported, a batch service would have to send a streamed call.
        """
        if self.deferred is not None:
            attempt.defer(self.deferred)
        step, log, call = self.plan.steps[index], self.log, attempt.call
        limits_s = min(log.stream_idle_s, step.timeout_s), step.timeout_s
        call.make_patience = partial(Patience, *limits_s)
        if len(self.plan.steps) > 1:
            usual_s, may_switch = log.silences.of, self._may_switch
            call.make_patience = partial(
                Patience, *limits_s, partial(usual_s, step.key), partial(may_switch, index)
            )

    def _may_switch(self, index: int) -> bool:
        """Return whether another model or deployment may answer in place of a silent one."""
        if self.delivering is not None and not self.may_continue(self.delivering):
            return False
        plan, balancer = self.plan, self.log.balancer
        steps, key = plan.steps, plan.steps[index].key
        return any(step.key != key for step in steps[plan.next_model_index(index) :]) or any(
            balancer.is_free(steps[other])
            for other in plan.group_of(index)
            if other != index and other not in self.tried
        )

    def announce_continuation(self, started: StartedAnswer) -> None:
        """Add the route of the model that continues an answer before the rest of the answer."""
        route = self._route(started.index, started.attempt)
        started.head.insert(0, [Event(continued=route.message())])

    def attempts_made(self) -> int:
        """Return the number of attempts that were sent to a provider."""
        return sum([record.outcome != "unsupported" for record in self.records])

    def failed_attempts(self) -> list[AttemptMessage]:
        """Return the attempts that have failed so far."""
        return [record.as_message() for record in self.records if record.outcome == "failed"]

    def with_attempts(self, error: GatewayError) -> GatewayError:
        """Set the `attempts` of an error to those made in this run; return the error."""
        error.attempts = [
            record.as_message()
            for record in self.records
            if record.outcome != "served"
            # An unsupported attempt is listed only if there are others.
            and (record.outcome != "unsupported" or len(self.records) > 1)
        ]
        return error

    async def start(
        self,
        index: int,
        attempt: Attempt,
        record: AttemptRecord,
        deadline: float,
        on_first_content: OnFirstContent | None = None,
    ) -> StartedAnswer:
        """Call a provider; return its answer once the first content has arrived.

        Args:
            index: index of the step in the plan.
            attempt: the attempt.
            record: the record of the attempt; a failure is recorded in it.
            deadline: deadline of the first content, by the loop's clock.
            on_first_content: called at the first content, if given.

        Raises:
            UpstreamError: the provider failed, or sent no content in time.
            GatewayError: the provider does not support the request, or the plan's time is over.
        """
        provider = self.plan.steps[index].target.provider
        batches: Batches | None = None
        whole: GenerateResponse | PassthroughAnswer | None = None
        head: list[Batch] = []
        record.attempt = attempt
        attempt.facts = record.facts
        record.on_first_content = on_first_content
        try:
            if attempt.stream or self.deferred is not None:
                self._prepare(index, attempt)
            try:
                with Deadline(self.timers, deadline):
                    if attempt.stream:
                        batches = attempt.provider.stream(attempt.call)
                        if self.whole:
                            whole = await _read_whole(attempt, batches, record)
                            await batches.aclose()
                        else:
                            head = await _read_head(attempt, batches, record)
                    else:
                        answer = await attempt.provider.whole(attempt.call)
                        if isinstance(answer, PassthroughAnswer):
                            whole = answer
                            attempt.report_whole(answer)
                        else:
                            head = [_content(attempt, answer)]
                        record.started()
                        record.served()
            except TimeoutError:
                raise self._late(provider, deadline) from None
            except UpstreamError as error:
                attempt.add_head(error)
                if isinstance(record, DeploymentRecord):
                    record.set_headers(attempt.call.answer_headers)
                raise
            if isinstance(record, DeploymentRecord):
                record.answers(attempt.call.answer_headers)
            self._set_route(index, attempt, head[0] if whole is None else whole)
            if attempt.usage is None and record.outcome == "served":
                record.delivered_tokens = _estimated_tokens(head if whole is None else whole)
        except BaseException as error:
            record.ended_by(error)
            if batches is not None:
                await batches.aclose()
            raise
        return StartedAnswer(index, attempt, record, head, batches, whole)

    def _route(self, index: int, attempt: Attempt) -> AnswerRoute:
        """Return the route of an answer, with the attempts that failed before."""
        route = attempt.route(self.plan.steps[index].step_id, self.attempts_made())
        route.failed_attempts = self.failed_attempts()
        return route

    def _set_route(
        self, index: int, attempt: Attempt, begun: Batch | GenerateResponse | PassthroughAnswer
    ) -> None:
        """Set the route of an answer, or of the first batch of one."""
        if len(self.records) == 1:
            route = attempt.route(self.plan.steps[index].step_id, 1)
        else:
            route = self._route(index, attempt)
        if isinstance(begun, PassthroughAnswer):
            begun.route = route
            return
        if isinstance(begun, GenerateResponse):
            begun.route.CopyFrom(route.message())
            return
        first = begun[0]
        kind = first.WhichOneof("kind")
        if kind == "start" or kind == "whole":
            answer = getattr(first, kind)
            answer.route.CopyFrom(route.message())

    def _late(self, provider: str, deadline: float) -> GatewayError:
        if deadline == self.budget.deadline:
            return out_of_time()
        return UpstreamError(
            errors_pb2.REASON_UPSTREAM_TIMEOUT,
            f"the provider {provider} did not answer within the time limit",
        )


async def _read_head(attempt: Attempt, batches: Batches, record: AttemptRecord) -> list[Batch]:
    """Return the batches up to the first content.

    Raises:
        UpstreamError: there is none.
    """
    head: list[Batch] = []
    async for read in batches:
        batch = attempt.apply_filters(read)
        if not batch:
            continue
        if has_content(batch):
            record.started()
            return [*head, batch]
        _add_announcement(batch, head)
        if attempt.is_done:
            break
    raise cut_off(record.step.target.provider)


async def _read_whole(
    attempt: Attempt, batches: Batches, record: AttemptRecord
) -> GenerateResponse:
    """Read a stream to its end; return the whole answer.

    The events are accumulated as they arrive: they take many times the memory of their content.

    Raises:
        UpstreamError: it has no content.
    """
    answer = Accumulator()
    has_started = False
    async for read in batches:
        batch = attempt.apply_filters(read)
        if not batch:
            continue
        if not has_started and has_content(batch):
            has_started = True
            record.started()
        answer.add(batch)
        if attempt.is_done:
            break
    if not has_started:
        raise cut_off(record.step.target.provider)
    record.served()
    return answer.response()


def _add_announcement(batch: Batch, head: list[Batch]) -> None:
    """Add a batch before the first content to `head`; of usage events only the last is kept."""
    if head and all(event.HasField("usage") for event in batch):
        if len(head) > 1 and head[-1][0].HasField("usage"):
            head.pop()
        head.append(batch[-1:])
    else:
        head.append(batch)


def _content(attempt: Attempt, answer: Sequence[Event]) -> Batch:
    """Return the events of a whole answer; set the usage of the attempt.

    Raises:
        UpstreamError: the answer has no content.
    """
    batch = attempt.apply_filters(answer)
    if not has_content(batch):
        raise cut_off(attempt.call.target.provider)
    first = batch[0]
    if first.HasField("whole") and first.whole.HasField("usage"):
        attempt.usage = with_compactions(first.whole.usage)
    return batch


def _estimated_tokens(answer: Sequence[Batch] | GenerateResponse | PassthroughAnswer) -> int:
    """Estimate the output tokens of a whole answer whose provider has reported no usage."""
    if isinstance(answer, PassthroughAnswer):
        return estimate_bytes(answer.passthrough)
    if not isinstance(answer, GenerateResponse):
        answer = whole_of(answer)
    return sum(
        estimate_tokens(block.text)
        + estimate_tokens(block.thinking.text)
        + estimate_tokens(block.tool_use.input)
        for choice in answer.choices
        for block in choice.blocks
    )
