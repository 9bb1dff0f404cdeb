"""One step's turn: its model is asked, and asked again, until it speaks."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from gateway.errors.v1 import errors_pb2
from services.common.deadline import Deadline
from services.common.errors import GatewayError, UpstreamError
from services.inference.accumulator import Accumulator, events_of
from services.inference.adaptation.errors import AdaptationError
from services.inference.attempt import Attempt, Batch, Batches
from services.inference.content import is_content
from services.inference.fallback.backoff import LONGEST_DELAY_S, Uniform
from services.inference.fallback.breakers import Key
from services.inference.fallback.failures import is_silence, is_transient, refuses_signatures
from services.inference.fallback.hedge import Spoken
from services.inference.fallback.ledger import Ledger, Record
from services.inference.fallback.plan import Plan, Step
from services.inference.fallback.recovery import Sent
from services.inference.offload import offload
from services.inference.providers.failures import cut_off
from services.inference.refusals import (
    MEDIA,
    PREFILL,
    UNSIGNED_THINKING,
    new_refusal,
    refuses_value,
)

# Refusals of one request that are answered with a changed one. Servers that tell one field at a
# time refuse a few; what is learnt from those counts for the next request.
_MOST_CHANGES = 8


@dataclass(slots=True)
class Manner:
    """How an attempt is made.

    Attributes:
        stream: whether the provider is to answer as a stream.
        discards_thinking: whether the thinking in the conversation is left out.
        sent: what of the answer has gone out already, if any.
        without: what the model has refused, names of `services.inference.refusals`.
    """

    stream: bool
    discards_thinking: bool = False
    sent: Sent | None = None
    without: frozenset[str] = frozenset()


class Asks(Protocol):
    """Makes attempts of a request."""

    def may_convert(self, step: Step) -> bool:
        """Return whether media may have to be converted before a step's model is asked."""

    async def adapt(self, step: Step) -> None:
        """Convert what a step's model does not read, unless that was done before.

        Raises:
            AdaptationError: a medium cannot be converted.
        """

    def converts(self, step: Step, field: str) -> bool:
        """Return whether a step's model can be asked without a medium that it refuses."""

    def attempt(self, step: Step, manner: Manner) -> tuple[Attempt, bool]:
        """Make an attempt; return whether it asks the model to go on with what was sent.

        Raises:
            GatewayError: the model cannot carry the request.
        """

    def refused(self, step: Step) -> frozenset[str]:
        """Return what a step's model refuses, names of `services.inference.refusals`."""

    def learn_refusal(self, key: Key, name: str) -> None:
        """Remember that a model refuses a field, or PREFILL."""


class Bounds:
    """What all turns of a request share: the time and the retries that are left."""

    def __init__(self, plan: Plan, now: float) -> None:
        self.deadline = None if plan.timeout_s is None else now + plan.timeout_s
        self._retries = plan.max_retries

    @property
    def allows_retry(self) -> bool:
        """Whether there is a retry left."""
        return self._retries is None or self._retries > 0

    def take_retry(self) -> None:
        """Use one up."""
        if self._retries is not None:
            self._retries -= 1


class Course(NamedTuple):
    """What a turn needs of its surroundings.

    Attributes:
        loop: the running event loop.
        plan: what the turn is part of.
        asks: makes its attempts.
        ledger: where they are written down.
        bounds: what is left of the plan's.
        uniform: throws the dice for jitter.
        whole: whether the answer is waited for to its end.
        records: of all attempts at the request, in order.
    """

    loop: asyncio.AbstractEventLoop
    plan: Plan
    asks: Asks
    ledger: Ledger
    bounds: Bounds
    uniform: Uniform
    whole: bool
    records: list[Record]


class Opened:
    """An answer that has begun: its first content has come; of a whole one, everything.

    Attributes:
        turn: whose it is.
        record: of the attempt.
        head: the batches that have come.
        batches: those that are still to come; None where the answer came whole.
    """

    def __init__(
        self, turn: "Turn", record: Record, head: list[Batch], batches: Batches | None
    ) -> None:
        self.turn = turn
        self.record = record
        self.head = head
        self.batches = batches

    async def close(self) -> None:
        """End it at the provider, if it has not ended."""
        self.record.cancelled()
        if self.batches is not None:
            await self.batches.aclose()


class Turn:
    """One step's turn.

    Attributes:
        index: of the step in the plan.
        step: the step.
        is_hedged: whether the next step is asked beside it while it is silent.
    """

    def __init__(self, course: Course, index: int, sent: Sent | None) -> None:
        self.index = index
        self.step = course.plan.steps[index]
        self._course = course
        self._clock: Callable[[], float] = course.loop.time
        self._began = self._clock()
        self._used = 0  # retries
        self.is_hedged = course.plan.hedges(index)
        self._manner = Manner(stream=not course.whole or self.is_hedged, sent=sent)
        self._continues = False
        self._changes = 0  # of the way in which the model is asked
        self._left_out: frozenset[str] = frozenset()  # beside what the model refuses

    @property
    def is_last(self) -> bool:
        """Whether no step follows."""
        return self.index + 1 == len(self._course.plan.steps)

    def renew(self, sent: Sent) -> None:
        """Begin anew, with what was sent already; retries that were used stay used."""
        self._began = self._clock()
        self._manner.sent = sent

    async def open(self, spoken: Spoken) -> Opened:
        """Ask until the model answers; `spoken` is called when it begins to.

        Raises:
            UpstreamError: it does not, and is not to be asked again.
            GatewayError: it cannot be sent the request, or the plan's time is over.
        """
        while True:
            try:
                return await self._ask(spoken)
            except UpstreamError as error:
                if self._asks_otherwise(error):
                    if self.may_convert:
                        await self.adapt()
                elif not await self.retries(error):
                    raise

    @property
    def may_convert(self) -> bool:
        """Whether media may have to be converted before the model is asked."""
        return self._course.asks.may_convert(self.step)

    async def adapt(self) -> None:
        """Convert the media that the model does not read, in the time of the step.

        Raises:
            AdaptationError: a medium cannot be converted.
            GatewayError: the plan's time is over.
        """
        course = self._course
        deadline = self._deadline()
        try:
            try:
                with Deadline(course.loop, deadline):
                    await course.asks.adapt(self.step)
            except TimeoutError:
                if deadline == course.bounds.deadline:
                    raise out_of_time() from None
                raise AdaptationError(
                    errors_pb2.REASON_UPSTREAM_TIMEOUT,
                    f"the media for {self.step.target.name} were not converted within the time "
                    "limit; send fewer or smaller ones, or allow the step more time",
                ) from None
        except GatewayError as error:
            record = course.ledger.begin(self.step)
            course.records.append(record)
            record.refused(error)
            raise

    def _asks_otherwise(self, error: UpstreamError) -> bool:
        """Return whether the model is to be asked at once in another way, so many times at most."""
        if self._changes == _MOST_CHANGES or not self._finds_other_way(error):
            return False
        self._changes += 1
        return True

    def _finds_other_way(self, error: UpstreamError) -> bool:
        if self._continues and not is_transient(error):
            # That it takes no such message must not hide why it was sent one.
            self._course.asks.learn_refusal(self.step.key, PREFILL)
            self._continues = False
            return True
        if field := new_refusal(error, self._manner.without):
            if field in MEDIA and not self._course.asks.converts(self.step, field):
                return False
            if refuses_value(error):
                self._left_out |= {field}  # the next caller's value may do
            else:
                self._course.asks.learn_refusal(self.step.key, field)
            return True
        if refuses_signatures(error) and not self._manner.discards_thinking:
            self._manner.discards_thinking = True
            self._course.asks.learn_refusal(self.step.key, UNSIGNED_THINKING)
            return True
        return False

    async def retries(self, error: UpstreamError) -> bool:
        """Return whether the model is to be asked again after a failure, once it is time to."""
        if not self._may_retry(error):
            return False
        delay = self.step.retries.delay(self._used, self._course.uniform)
        # `auto` gives a provider that limits its rate a moment, also where it asks for none.
        asked = error.asked_wait_s if self._course.plan.is_patient else error.retry_after_s
        delay = max(delay, asked or 0)
        if self._clock() + delay > self._latest_retry():
            return False
        self._used += 1
        self._course.bounds.take_retry()
        await asyncio.sleep(delay)
        return True

    def _may_retry(self, error: UpstreamError) -> bool:
        return (
            is_transient(error)
            and not is_silence(error)
            and self._used < self.step.retries.most
            and self._course.bounds.allows_retry
            and (self.is_last or self._course.ledger.breakers.admits(self.step.key))
        )

    def _latest_retry(self) -> float:
        plan = self._course.plan
        latest = self._deadline()
        if plan.is_patient:
            return latest
        # Whoever said nothing about fallback does not wait long, and less where the next
        # model would be asked meanwhile.
        hedge_at = self._began + plan.hedge_after_s
        return min(latest, hedge_at if self.is_hedged else self._clock() + LONGEST_DELAY_S)

    def _deadline(self) -> float:
        own = self._began + self.step.timeout_s
        overall = self._course.bounds.deadline
        return own if overall is None else min(own, overall)

    async def _ask(self, spoken: Spoken) -> Opened:
        course = self._course
        record = course.ledger.begin(self.step)
        course.records.append(record)
        batches: Batches | None = None
        opened: Opened | None = None
        deadline = self._deadline()
        try:
            attempt = await offload(self._make_attempt)
            with Deadline(course.loop, deadline):
                if attempt.stream:
                    batches = attempt.batches()
                    head = await self._listen(batches, record, spoken)
                else:
                    head = [await self._whole(attempt, record, spoken)]
            self._tell_served(head, attempt)
            opened = Opened(self, record, head, batches)
            return opened
        except TimeoutError:
            late = self._late(deadline)
            record.failed(late)
            raise late from None
        except UpstreamError as error:
            record.failed(error)
            raise
        except GatewayError as error:
            record.refused(error)
            raise
        finally:
            if opened is None:
                record.cancelled()
                if batches is not None:
                    await batches.aclose()

    def _make_attempt(self) -> Attempt:
        asks = self._course.asks
        self._manner.without = asks.refused(self.step) | self._left_out
        attempt, self._continues = asks.attempt(self.step, self._manner)
        return attempt

    async def _whole(self, attempt: Attempt, record: Record, spoken: Spoken) -> Batch:
        batch = await attempt.whole()
        if not any(map(is_content, batch)):
            raise cut_off(self.step.target.provider)
        record.answers()
        spoken()
        record.served()
        return batch

    async def _listen(self, batches: Batches, record: Record, spoken: Spoken) -> list[Batch]:
        """Return what comes until the model speaks, or all of a whole answer.

        A whole answer that comes as a stream is put together as it comes, since its events
        take many times as much as what they say.
        """
        head: list[Batch] = []
        whole: Accumulator | None = None
        speaks = False
        async for batch in batches:
            if not speaks and any(map(is_content, batch)):
                speaks = True
                record.answers()
                spoken()
                if not self._course.whole:
                    return [*head, batch]
            if self._course.whole and head:
                if whole is None:
                    whole = Accumulator()
                    whole.add(head[0])
                whole.add(batch)
            else:
                _announce(batch, head)
        if not speaks:
            raise cut_off(self.step.target.provider)
        record.served()
        return head if whole is None else [events_of(whole.response())]

    def _tell_served(self, head: list[Batch], attempt: Attempt) -> None:
        first = head[0][0]
        kind = first.WhichOneof("kind")
        if kind == "start" or kind == "verbatim":
            made = sum([record.outcome != "unsupported" for record in self._course.records])
            attempt.tell(getattr(first, kind).served, self.step.step_id, made)

    def _late(self, deadline: float) -> GatewayError:
        if deadline == self._course.bounds.deadline:
            return out_of_time()
        return UpstreamError(
            errors_pb2.REASON_UPSTREAM_TIMEOUT,
            f"the provider {self.step.target.provider} did not answer within the time limit",
        )


def _announce(batch: Batch, head: list[Batch]) -> None:
    """Add what comes before the content to what came of it; of counts the last says all."""
    if head and all(event.HasField("usage") for event in batch):
        if len(head) > 1 and head[-1][0].HasField("usage"):
            head.pop()
        head.append(batch[-1:])
    else:
        head.append(batch)


def out_of_time() -> GatewayError:
    """The caller's bound on the whole chain has passed: 504."""
    return GatewayError(
        errors_pb2.REASON_TIMEOUT,
        "fallback_config.global_timeout_ms: the time for the whole chain is over",
    )
