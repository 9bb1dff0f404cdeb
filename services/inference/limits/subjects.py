"""Limits that apply to a request: those of the caller's key, user and team."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import SubjectKind, SubjectLimits
from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import EmbedRequest, GenerateRequest
from services.common.limit_windows import MEASURES, NO_PERIOD, SPEND, Period
from services.inference.limits.leaser import Key

_CHAINS = (inference_pb2.FALLBACK_MODE_ENABLED, inference_pb2.FALLBACK_MODE_STRICT)
# The model name of the gateway's embedded converters.
_EMBEDDED = "embedded"
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


@dataclass(frozen=True, slots=True)
class Need:
    """An allowance of which a request needs an amount.

    Attributes:
        key: the key of the allowance.
        limit: the limit in the caller's identity.
        place: the place of the amount in a `Reservation`.
        is_settled: whether the taken amount is replaced once the request has ended.
    """

    key: Key
    limit: int
    place: int
    is_settled: bool


class CallerLimits:
    """The limits of one caller.

    Args:
        limits: the limits in the caller's identity.

    Attributes:
        restrict_models: whether some models may not be used.
        count_tokens: whether the tokens of a request are needed, to count or to price them.
        count_cost: whether the cost of requests is counted.
        needs: the needs of each request, those with the longest windows first.
        settled: the needs that are settled.
        reported_needs: the indexes of the needs of each measure that is reported to the caller.
    """

    def __init__(self, limits: Sequence[SubjectLimits]) -> None:
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


def refused_model(
    limits: Sequence[SubjectLimits], names: Sequence[tuple[str, str]]
) -> tuple[str, str, SubjectKind.ValueType] | None:
    """Return the first model that a caller may not use, or None.

    Args:
        limits: the limits of the caller.
        names: pairs of a field's path and a model's name.

    Returns:
        The path, the name, and the kind of the subject that has the limit.
    """
    for path, name in names:
        for subject_limits in limits:
            if not _allows(subject_limits, name):
                return path, name, subject_limits.kind
    return None


def may_use(limits: Sequence[SubjectLimits], name: str) -> bool:
    """Return whether a caller may use a model."""
    return all(_allows(subject_limits, name) for subject_limits in limits)


def _allows(limits: SubjectLimits, name: str) -> bool:
    if not limits.HasField("allowed_models"):
        return True
    return any(
        name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
        for pattern in limits.allowed_models.patterns
    )


def models_of(request: GenerateRequest | EmbedRequest) -> list[tuple[str, str]]:
    """Return pairs of path and model name for all models that a request names.

    Models that the settings substitute or add are the operator's choice, and not included.
    """
    names = []
    if request.fallback != inference_pb2.FALLBACK_MODE_STRICT:
        names.append(("model", request.model))
    if request.fallback in _CHAINS:
        names += [
            (f"fallback_config.steps[{index}].model", step.model)
            for index, step in enumerate(request.fallback_config.steps)
        ]
    if isinstance(request, GenerateRequest) and request.HasField("multimodal"):
        multimodal = request.multimodal
        names += [
            (f"multimodal.{kind}.model", model)
            for kind, model in (
                ("image", multimodal.image.model),
                ("pdf", multimodal.pdf.model),
                ("video", multimodal.video.model),
                ("audio", multimodal.audio.model),
            )
            if model not in ("", _EMBEDDED)
        ]
    return names
