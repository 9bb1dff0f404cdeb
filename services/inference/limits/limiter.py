"""Admits requests of callers with limits, and settles them once they have been answered."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from gateway.accounts.v1.limits_pb2 import SubjectLimits
from gateway.inference.v1.inference_pb2 import (
    EmbedRequest,
    EmbedResponse,
    GenerateRequest,
    GenerateResponse,
)
from services.common.errors import GatewayError
from services.common.lazy_request import LazyRequest
from services.common.passthrough_answer import PassthroughAnswer
from services.inference import estimate
from services.inference.limits.admission import KEPT_CALLERS, Admission, Permit
from services.inference.limits.named_models import check_models
from services.inference.limits.subjects import CallerLimits
from services.inference.limits.usage import AnswerMeter, End, Price, tokens_of
from services.inference.offload import mark, offload
from services.inference.stream.filters import Batch
from services.inference.usage.lines import UsedModel
from services.inference.usage.request_usage import RequestUsage, current_usage

# Minimum bytes of JSON per token, roughly.
_BYTES_A_TOKEN = 3


class LimitedAnswer:
    """The answer to an admitted request: a context manager that settles the request on exit.

    Args:
        permit: the permit of the request.
        price: returns the price of a model's usage.
    """

    __slots__ = ("_answer", "_meter", "_permit", "_price", "_used")

    def __init__(self, permit: Permit, price: Price) -> None:
        self._permit = permit
        self._price = price
        self._answer: GenerateResponse | PassthroughAnswer | EmbedResponse | None = None
        self._meter: AnswerMeter | None = None
        # The meter of this task's request adds the usage of its models there.
        self._used = RequestUsage()
        current_usage.set(self._used)

    def add_answer(self, answer: GenerateResponse | PassthroughAnswer | EmbedResponse) -> None:
        """Set the whole answer, and add the state of the caller's limits to it."""
        self._answer = answer
        self._permit.put_limits(answer.route)

    def add_events(self, batch: Batch) -> None:
        """Add events of a streamed answer, and the state of the caller's limits to its start."""
        if self._meter is None:
            self._meter = AnswerMeter()
        start = self._meter.add_events(batch)
        if start is not None:
            self._permit.put_limits(start.route)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        permit = self._permit
        end = End.LEFT
        if error is None:
            end = End.COMPLETE
        elif isinstance(error, GatewayError):
            end = End.FAILED
        models = self._models(end)
        tokens = sum(map(tokens_of, models))
        cost = sum([self._price(one) or 0 for one in models]) if permit.counts_cost else 0
        permit.end(tokens, cost)

    def _models(self, end: End) -> Sequence[UsedModel]:
        """Return the usage of the request by model."""
        answer, meter = self._answer, self._meter
        if meter is None:
            reported = self._used.reported
            if answer is not None and end is End.COMPLETE and reported is not None:
                return reported
            meter = AnswerMeter()
            if answer is not None:
                meter.add_answer(answer)
        return meter.used(self._used, self._permit.tokens, end)


class LimitedCount:
    """A count of tokens: a context manager, within which it may be admitted as a request.

    Counting is free unless media have to be converted for it.

    Args:
        admission: admits requests.
        limits: the limits of the caller.
    """

    __slots__ = ("_admission", "_limits", "_permit")

    def __init__(self, admission: Admission, limits: CallerLimits) -> None:
        self._admission = admission
        self._limits = limits
        self._permit: Permit | None = None

    async def admit(self) -> None:
        """Admit the count as a request, once.

        Raises:
            GatewayError: as `Admission.admit`.
        """
        if self._permit is None:
            # One token, so that a caller without any left is refused; it is returned.
            self._permit = await self._admission.admit(self._limits, 1)

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
    """

    def __init__(self, admission: Admission, price: Price) -> None:
        self._admission = admission
        self._price = price
        # By the `id` of the limits' sequence, which each value keeps alive.
        self._known: dict[int, CallerLimits] = {}

    async def begin(
        self,
        limits: Sequence[SubjectLimits],
        given: GenerateRequest | LazyRequest | EmbedRequest,
    ) -> LimitedAnswer:
        """Admit a request that has been validated; the caller must enter the answer at once.

        Raises:
            GatewayError: as `Admission.admit`; permission_denied, a model is not allowed.
        """
        known = self._known.get(id(limits)) or self._read_limits(limits)
        if known.restrict_models or known.count_cost:
            # The fields of a lazy conversation name no models.
            named = given.request if isinstance(given, LazyRequest) else given
            if isinstance(named, GenerateRequest):
                mark(named)
            await offload(check_models, limits, named, counts_cost=known.count_cost)
        tokens = 0
        if known.count_tokens:
            if isinstance(given, LazyRequest):
                # The conversation of a lazy request is only text.
                tokens = given.ByteSize() // _BYTES_A_TOKEN + 1
            else:
                tokens = await _tokens_of(given)
        return LimitedAnswer(await self._admission.admit(known, tokens), self._price)

    def begin_count(self, limits: Sequence[SubjectLimits]) -> LimitedCount:
        """Return the admission of a count of tokens."""
        known = self._known.get(id(limits)) or self._read_limits(limits)
        return LimitedCount(self._admission, known)

    def _read_limits(self, limits: Sequence[SubjectLimits]) -> CallerLimits:
        """Parse and cache the limits of a caller."""
        if len(self._known) == KEPT_CALLERS:
            self._known.clear()
        known = self._known[id(limits)] = CallerLimits(limits)
        return known


async def _tokens_of(given: GenerateRequest | EmbedRequest) -> int:
    """Return the estimated input tokens of a request."""
    if isinstance(given, EmbedRequest):
        return estimate.estimate_inputs(given)
    mark(given)
    return await offload(estimate.estimate_input_tokens, given)
