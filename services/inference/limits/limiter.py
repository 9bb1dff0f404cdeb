"""Admits requests of callers with limits, and settles them once they have been answered."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from gateway.accounts.v1.limits_pb2 import SubjectLimits
from gateway.inference.v1.inference_pb2 import (
    EmbedRequest,
    EmbedResponse,
    ForwardRequest,
    GenerateRequest,
    GenerateResponse,
)
from services.common.messages.lazy_request import LazyRequest
from services.common.messages.passthrough_answer import PassthroughAnswer
from services.inference.allowances.admission import KEPT_CALLERS, Admission, Permit
from services.inference.allowances.needs import RequestLimits, Reservation
from services.inference.limits.fees import Fees, fees_of
from services.inference.limits.input_tokens import Sent, most_input_tokens
from services.inference.limits.named_models import check_models
from services.inference.limits.reservation import Demand
from services.inference.offload import mark, offload
from services.inference.stream.filters import Batch
from services.inference.usage.lines import UsedModel, tokens_of
from services.inference.usage.request_usage import RequestUsage, current_usage

# Returns the price of a model's usage in 10^-12 US dollars, or None if the price is unknown.
Price = Callable[[UsedModel], int | None]
# Returns what a request may use at most, by its plan and its fees (None if no money is counted).
DemandOf = Callable[[GenerateRequest | EmbedRequest | ForwardRequest, Fees | None], Demand]

_ONE = Reservation()
_NOTHING = Reservation(0)
# So that a caller without any tokens or money left is refused; both are returned.
_LEAST = Reservation(tokens=1, cost_pusd=1)


class LimitedAnswer:
    """The answer to an admitted request: a context manager that settles the request.

    It is settled with the usage that is recorded, on exit, or once the answer has been read to its
    end: an answer with memory is still read after its caller has left.

    Args:
        permit: the permit of the request.
        price: returns the price of a model's usage.
        demand: what the request may use at most; None if neither tokens nor money are counted.
    """

    __slots__ = ("_demand", "_has_start", "_needed", "_permit", "_price", "_rivals", "_used")

    def __init__(self, permit: Permit, price: Price, demand: Demand | None) -> None:
        self._permit = permit
        self._price = price
        self._demand = demand
        self._has_start = False
        # What one model needs for the request, and what is reserved for further ones beside it.
        self._needed, self._rivals = permit.amounts, _NOTHING
        # The meter of this task's request adds the usage of its models there.
        self._used = (
            RequestUsage() if demand is None else RequestUsage(self._extend, self._reserve_rival)
        )
        current_usage.set(self._used)

    def add_answer(self, answer: GenerateResponse | PassthroughAnswer | EmbedResponse) -> None:
        """Settle a whole answer, and add the state of the caller's limits to it."""
        self._used.when_ended(self._settle)
        self._permit.put_limits(answer.route)

    def add_events(self, batch: Batch) -> None:
        """Add the state of the caller's limits to the start of a streamed answer."""
        if self._has_start:
            return
        for event in batch:
            if event.HasField("start"):
                self._has_start = True
                self._permit.put_limits(event.start.route)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._used.when_ended(self._settle)

    def _settle(self) -> None:
        used = self._used.all
        cost = (
            sum([self._price(used_model) or 0 for used_model in used])
            if self._permit.counts_cost
            else 0
        )
        self._permit.end(sum(map(tokens_of, used)), cost)

    async def _extend(self, input_tokens: int, output_tokens: int) -> None:
        """Reserve what a request needs that uses more than its caller sent."""
        if self._demand is not None:
            self._needed = self._demand.reservation(input_tokens, output_tokens)
            await self._permit.extend(_sum(self._needed, self._rivals))

    async def _reserve_rival(self) -> None:
        """Reserve as much again as one model needs."""
        needed = self._needed
        await self._permit.add(needed)
        self._rivals = _sum(self._rivals, needed)


class LimitedCount:
    """A count of tokens: a context manager, within which it may be admitted as a request.

    Counting is free unless media have to be converted for it.

    Args:
        admission: admits requests.
        limits: the limits of the caller.
    """

    __slots__ = ("_admission", "_limits", "_permit")

    def __init__(self, admission: Admission, limits: RequestLimits) -> None:
        self._admission = admission
        self._limits = limits
        self._permit: Permit | None = None

    async def admit(self) -> None:
        """Admit the count as a request, once.

        Raises:
            GatewayError: as `Admission.admit`.
        """
        if self._permit is None:
            self._permit = await self._admission.admit(self._limits, _LEAST)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._permit is not None:
            self._permit.end(0, 0)


class Limiter:
    """Admits requests within the limits of their callers.

    Args:
        admission: admits requests.
        price: returns the price of a model's usage.
        demand_of: returns what a request may use at most.
    """

    def __init__(self, admission: Admission, price: Price, demand_of: DemandOf) -> None:
        self._admission = admission
        self._price = price
        self._demand_of = demand_of
        # By the `id` of the limits' sequence, which each value keeps alive.
        self._known: dict[int, RequestLimits] = {}

    async def begin(
        self,
        limits: Sequence[SubjectLimits],
        sent: Sent,
    ) -> LimitedAnswer:
        """Admit a request that has been validated; the caller must enter the answer at once.

        Raises:
            GatewayError: as `Admission.admit`; permission_denied, a model is not allowed, or the
                caller has a budget and the cost is not known; as `Plans.plan_for`.
        """
        caller_limits = self._known.get(id(limits)) or self._read_limits(limits)
        # The fields of a lazy conversation name no models.
        request = sent.request if isinstance(sent, LazyRequest) else sent
        if caller_limits.restrict_models or caller_limits.count_cost:
            if isinstance(request, GenerateRequest):
                mark(request)
            await offload(check_models, limits, request, counts_cost=caller_limits.count_cost)
        demand, amounts = None, _ONE
        if caller_limits.count_tokens:
            fees = await offload(fees_of, sent) if caller_limits.count_cost else None
            demand = self._demand_of(request, fees)
            amounts = demand.reservation(await _tokens_of(sent))
        permit = await self._admission.admit(caller_limits, amounts)
        return LimitedAnswer(permit, self._price, demand)

    def begin_answered(self, limits: Sequence[SubjectLimits]) -> LimitedAnswer:
        """Settle a request that was admitted when a batch service got it."""
        caller_limits = self._known.get(id(limits)) or self._read_limits(limits)
        return LimitedAnswer(self._admission.admit_answered(caller_limits), self._price, None)

    def begin_count(self, limits: Sequence[SubjectLimits]) -> LimitedCount:
        """Return the admission of a count of tokens."""
        caller_limits = self._known.get(id(limits)) or self._read_limits(limits)
        return LimitedCount(self._admission, caller_limits)

    def _read_limits(self, limits: Sequence[SubjectLimits]) -> RequestLimits:
        """Parse and cache the limits of a caller."""
        if len(self._known) == KEPT_CALLERS:
            self._known.clear()
        caller_limits = self._known[id(limits)] = RequestLimits(limits)
        return caller_limits


def _sum(one: Reservation, other: Reservation) -> Reservation:
    return Reservation(1, one.tokens + other.tokens, one.cost_pusd + other.cost_pusd)


async def _tokens_of(sent: Sent) -> int:
    """Return the most input tokens of a request."""
    if isinstance(sent, GenerateRequest):
        mark(sent)
    return await offload(most_input_tokens, sent)
