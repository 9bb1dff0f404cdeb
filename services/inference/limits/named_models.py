"""Checks of the models that a request names, for callers with limits."""

from collections.abc import Sequence
from typing import Final

from gateway.accounts.v1.limits_pb2 import SubjectLimits
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import EmbedRequest, ForwardRequest, GenerateRequest
from services.common.errors import GatewayError
from services.common.text.texts import quoted
from services.inference.allowances.limit_errors import model_refused
from services.inference.limits.subjects import models_of, refused_model
from services.inference.request.further_models import FurtherModel, further_models

# Models that a request may name in fields of its dialect; no provider takes as many.
MAX_FURTHER_MODELS: Final = 64


def check_models(
    limits: Sequence[SubjectLimits],
    request: GenerateRequest | EmbedRequest | ForwardRequest,
    *,
    counts_cost: bool = False,
) -> None:
    """Check that a caller may use the models that a request names.

    Args:
        limits: the limits of the caller.
        request: the request.
        counts_cost: whether the caller has a budget, against which only the models that the
            gateway itself calls are counted.

    Raises:
        GatewayError: permission_denied, with the path of the field.
    """
    refused = refused_model(limits, models_of(request))
    if refused is not None:
        raise model_refused(*refused)
    has_list = any(subject_limits.HasField("allowed_models") for subject_limits in limits)
    if has_list or counts_cost:
        for count, model in enumerate(further_models(request)):
            if count == MAX_FURTHER_MODELS:
                raise _further_refused(model, f"after {MAX_FURTHER_MODELS} others")
            _check_further(limits, model, has_list=has_list, counts_cost=counts_cost)


def _check_further(
    limits: Sequence[SubjectLimits], model: FurtherModel, *, has_list: bool, counts_cost: bool
) -> None:
    if not model.is_known:
        raise _further_refused(model, "which may not be used here with limits on models or spend")
    if counts_cost and not model.is_free:
        raise _further_refused(model, "whose price the budget does not count")
    if has_list and (refused := refused_model(limits, [model])) is not None:
        raise model_refused(*refused)


def _further_refused(model: FurtherModel, why: str) -> GatewayError:
    return GatewayError(
        errors_pb2.REASON_PERMISSION_DENIED,
        f"{model.path}: names a further model, {quoted(model.name)}, {why}; leave the field out, "
        "or name the model in the field model or in a step of fallback_config",
        param=model.path,
    )
