"""The models that the limits of a caller allow."""

from collections.abc import Sequence

from gateway.accounts.v1.limits_pb2 import SubjectKind, SubjectLimits
from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import EmbedRequest, ForwardRequest, GenerateRequest

_CHAINS = (inference_pb2.FALLBACK_MODE_ENABLED, inference_pb2.FALLBACK_MODE_STRICT)
# The model name of the gateway's embedded converters.
_EMBEDDED = "embedded"


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


def models_of(
    request: GenerateRequest | EmbedRequest | ForwardRequest,
) -> list[tuple[str, str]]:
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
