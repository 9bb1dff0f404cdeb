"""Errors of conversions: they say something of a request's part, and nothing of its target."""

from gateway.errors.v1 import errors_pb2
from gateway.errors.v1.errors_pb2 import Reason
from services.common.errors import GatewayError

# Answers of a helper model's provider that say that the medium is at fault.
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


class AdaptationError(GatewayError):
    """Error raised for a medium that cannot be converted for a model.

    The next model of a chain may read it as it is.
    """


def of_part(path: str, reason: Reason.ValueType, message: str) -> AdaptationError:
    """Return an error that names the part at `path`."""
    return AdaptationError(reason, f"{path}: {message}", param=path)


def at_part(path: str, error: GatewayError) -> AdaptationError:
    """Return the error of a conversion with the path of its part."""
    return AdaptationError(
        error.reason,
        f"{path}: {error.message}",
        param=path,
        retry_after_s=error.retry_after_s,
        limit=error.limit,
    )


def of_helper(path: str, what: str, model: str, error: GatewayError) -> AdaptationError:
    """Return the error for a helper model that failed: 502, or 400 where it refused the medium.

    Args:
        path: of the part.
        what: the helper was to do, as `describe the image`.
        model: as callers write it.
        error: what its provider answered.
    """
    if error.reason in _REFUSALS:
        reason = errors_pb2.REASON_INVALID_REQUEST
        told = f"the model {model}, which was to {what}, refused it: {error.message}"
    else:
        reason = errors_pb2.REASON_UPSTREAM_ERROR
        told = (
            f"the model {model}, which was to {what}, failed: {error.message}; try again, or "
            "name another model"
        )
    return of_part(path, reason, told)
