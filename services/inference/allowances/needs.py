"""The limits that a request has to keep, and what it needs of their allowances. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import SubjectLimits
from services.common.limit_windows import MEASURES, NO_PERIOD, SPEND, Period
from services.inference.allowances.leaser import OF_SETTINGS, Key

_TOKENS = limits_pb2.MEASURE_TOKENS_PER_MINUTE
# The longest windows first; concurrent requests last.
_ORDER = (
    limits_pb2.MEASURE_SPEND_PER_PERIOD,
    limits_pb2.MEASURE_SPEND_PER_MONTH,
    limits_pb2.MEASURE_SPEND_PER_WEEK,
    limits_pb2.MEASURE_SPEND_PER_DAY,
    _TOKENS,
    limits_pb2.MEASURE_REQUESTS_PER_MINUTE,
    limits_pb2.MEASURE_CONCURRENT_REQUESTS,
)
# Measures whose remainder is reported to callers.
_REPORTED = (_TOKENS, limits_pb2.MEASURE_REQUESTS_PER_MINUTE, *sorted(SPEND))


# Maximum characters of a subject's id in claims.
_MAX_ID = 64


def subject_id(name: str) -> str:
    """Return the id of a subject whose name may be long: the name, or its beginning and a hash."""
    if len(name) <= _MAX_ID:
        return name
    return f"{name[:31]}~{blake2b(name.encode(), digest_size=16).hexdigest()}"


class Reservation(NamedTuple):
    """Amounts taken of allowances for a request, in the order of `Need.place`.

    Attributes:
        requests: 1.
        tokens: input and output tokens.
        cost_pusd: cost in 10^-12 US dollars.
    """

    requests: int = 1
    tokens: int = 0
    cost_pusd: int = 0


@dataclass(frozen=True, slots=True)
class Need:
    """An allowance of which a request needs an amount.

    Attributes:
        key: the key of the allowance.
        limit: the limit in the caller's identity, or in the settings.
        place: the place of the amount in a `Reservation`.
        is_settled: whether the taken amount is replaced once the request has ended.
    """

    key: Key
    limit: int
    place: int
    is_settled: bool


class RequestLimits:
    """The limits of one caller, or of one deployment.

    Args:
        limits: the limits in the caller's identity, or those of the settings.

    Attributes:
        is_of_settings: whether the limits are in the settings of this worker.
        restrict_models: whether some models may not be used.
        count_tokens: whether the tokens of a request are needed, to count or to price them.
        count_cost: whether the cost of requests is counted.
        needs: the needs of each request, those with the longest windows first.
        settled: the needs that are settled.
        reported_needs: the indexes of the needs of each measure that is reported to the caller.
    """

    def __init__(self, limits: Sequence[SubjectLimits]) -> None:
        self.is_of_settings = any(one.kind in OF_SETTINGS for one in limits)
        self._limits = limits  # kept alive: the limiter's cache is keyed by its `id`
        self.restrict_models = any(
            subject_limits.HasField("allowed_models") for subject_limits in limits
        )
        allowances = [
            (_key(subject_limits, field.name), limit)
            for subject_limits in limits
            for field, limit in subject_limits.ListFields()
            if field.name in MEASURES
        ]
        allowances.sort(key=_order)
        measures = {key.measure for key, _ in allowances}
        self.count_cost = not SPEND.isdisjoint(measures)
        self.count_tokens = self.count_cost or _TOKENS in measures
        self.needs = [_need(key, limit) for key, limit in allowances]
        self.settled = [need for need in self.needs if need.is_settled]
        self.reported_needs = [
            [index for index, need in enumerate(self.needs) if need.key.measure == measure]
            for measure in _REPORTED
            if measure in measures
        ]


def _key(limits: SubjectLimits, field: str) -> Key:
    measure, period = MEASURES[field], NO_PERIOD
    if measure == limits_pb2.MEASURE_SPEND_PER_PERIOD:
        period = Period(limits.period_start_day, limits.period_days).normalized()
    return Key(limits.kind, limits.id, measure, period)


def _need(key: Key, limit: int) -> Need:
    measure = key.measure
    place = 1 if measure == _TOKENS else 2 if measure in SPEND else 0
    return Need(key, limit, place, measure != limits_pb2.MEASURE_REQUESTS_PER_MINUTE)


def _order(allowance: tuple[Key, int]) -> int:
    return _ORDER.index(allowance[0].measure)
