"""What the limits of a caller ask of a request."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import Measure, SubjectKind, SubjectLimits
from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import EmbedRequest, GenerateRequest
from services.inference.limits.leaser import Key


class Need(NamedTuple):
    """What a request needs of an allowance.

    Attributes:
        key: the allowance.
        limit: as the caller's identity says.
        amount: what must be available.
        taken: what the request takes of it at once.
    """

    key: Key
    limit: int
    amount: int
    taken: int


# The measures by their fields of `SubjectLimits`.
_MEASURES: Mapping[str, Measure.ValueType] = {
    "requests_per_minute": limits_pb2.MEASURE_REQUESTS_PER_MINUTE,
    "tokens_per_minute": limits_pb2.MEASURE_TOKENS_PER_MINUTE,
    "concurrent_requests": limits_pb2.MEASURE_CONCURRENT_REQUESTS,
    "spend_per_day_pusd": limits_pb2.MEASURE_SPEND_PER_DAY,
    "spend_per_month_pusd": limits_pb2.MEASURE_SPEND_PER_MONTH,
}
_CHAINS = (inference_pb2.FALLBACK_MODE_ENABLED, inference_pb2.FALLBACK_MODE_STRICT)
# The gateway itself, in place of a model.
_EMBEDDED = "embedded"
SPEND = frozenset({limits_pb2.MEASURE_SPEND_PER_MONTH, limits_pb2.MEASURE_SPEND_PER_DAY})


def counts_tokens(limits: Sequence[SubjectLimits]) -> bool:
    """Return whether the tokens of a request have to be known, to count or to price them."""
    return any(
        one.HasField("tokens_per_minute")
        or one.HasField("spend_per_day_pusd")
        or one.HasField("spend_per_month_pusd")
        for one in limits
    )


def needs_of(limits: Sequence[SubjectLimits], tokens: int) -> list[Need]:
    """Return what a request needs, first what will not pass for longest.

    Args:
        limits: those of its caller.
        tokens: about how many it has.
    """
    needs = []
    for one in limits:
        for field, limit in one.ListFields():
            measure = _MEASURES.get(field.name)
            if measure is None:
                continue
            if measure in SPEND:
                # What an answer costs is known after it; something must be left.
                amount, taken = 1, 0
            else:
                amount = taken = tokens if measure == limits_pb2.MEASURE_TOKENS_PER_MINUTE else 1
            needs.append(Need(Key(one.kind, one.id, measure), limit, amount, taken))
    needs.sort(key=_order)
    return needs


def _order(need: Need) -> tuple[bool, int]:
    measure = need.key.measure
    return measure == limits_pb2.MEASURE_CONCURRENT_REQUESTS, -measure


def refused_model(
    limits: Sequence[SubjectLimits], names: Sequence[tuple[str, str]]
) -> tuple[str, str, SubjectKind.ValueType] | None:
    """Return the first model that a caller may not use; None when all are allowed.

    Args:
        limits: those of the caller.
        names: of models, each with the path of its field.

    Returns:
        The path, the name, and the kind of the subject that has the limit.
    """
    for path, name in names:
        for one in limits:
            if not _allows(one, name):
                return path, name, one.kind
    return None


def may_use(limits: Sequence[SubjectLimits], name: str) -> bool:
    """Return whether a caller may use a model."""
    return all(_allows(one, name) for one in limits)


def _allows(limits: SubjectLimits, name: str) -> bool:
    if not limits.HasField("allowed_models"):
        return True
    return any(
        name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
        for pattern in limits.allowed_models.patterns
    )


def models_of(request: GenerateRequest | EmbedRequest) -> list[tuple[str, str]]:
    """Return the models that a request names, each with the path of its field.

    Those that the settings put in their place, or beside them, are the operator's choice.
    """
    names = []
    if request.fallback != inference_pb2.FALLBACK_MODE_STRICT:
        names.append(("model", request.model))
    if request.fallback in _CHAINS:
        names += [
            (f"fallback_config.steps[{at}].model", step.model)
            for at, step in enumerate(request.fallback_config.steps)
        ]
    if isinstance(request, GenerateRequest) and request.HasField("multimodal"):
        wanted = request.multimodal
        names += [
            (f"multimodal.{kind}.model", model)
            for kind, model in (
                ("image", wanted.image.model),
                ("pdf", wanted.pdf.model),
                ("video", wanted.video.model),
                ("audio", wanted.audio.model),
            )
            if model not in ("", _EMBEDDED)
        ]
    return names
