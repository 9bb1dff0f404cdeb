"""Errors of conversions, which concern the request and not its target."""

from gateway.errors.v1 import errors_pb2
from gateway.errors.v1.errors_pb2 import Reason
from services.common.errors import GatewayError
from services.inference.media import AdaptationError

# Reasons of a helper model's provider that mean that it rejected the medium.
_REFUSALS = frozenset(
    {
        errors_pb2.REASON_INVALID_REQUEST,
        errors_pb2.REASON_UNSUPPORTED,
        errors_pb2.REASON_TOO_LARGE,
        errors_pb2.REASON_UPSTREAM_REJECTED,
        errors_pb2.REASON_CONTEXT_LENGTH_EXCEEDED,
        errors_pb2.REASON_CONTENT_FILTER,
    }
)


def of_part(path: str, reason: Reason.ValueType, message: str) -> AdaptationError:
    """Return an error that names the part at `path`."""
    return AdaptationError(reason, f"{path}: {message}", param=path)


def at_part(path: str, error: GatewayError) -> AdaptationError:
    """Return a conversion's error with the path of the part added."""
    return AdaptationError(
        error.reason,
        f"{path}: {error.message}",
        param=path,
        retry_after_s=error.retry_after_s,
        limit=error.limit,
    )


def of_helper(path: str, helper_task: str, model: str, error: GatewayError) -> AdaptationError:
    """Return the error for a failed helper model: 502, or 400 if it rejected the medium.

    Args:
        path: the path of the part.
        helper_task: the helper's task, such as `describe the image`.
        model: the name that callers use.
        error: the provider's error.
    """
    if error.reason in _REFUSALS:
        reason = errors_pb2.REASON_INVALID_REQUEST
        message = f"the model {model} refused to {helper_task}: {error.message}"
    else:
        reason = errors_pb2.REASON_UPSTREAM_ERROR
        message = (
            f"the model {model} failed to {helper_task}: {error.message}; "
            "try again, or use another model"
        )
    return of_part(path, reason, message)
