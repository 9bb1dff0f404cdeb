"""What a failure means for a chain: is the same model asked again, is the next one? Pure."""

from dataclasses import dataclass

from gateway.errors.v1 import errors_pb2
from services.common.errors import UpstreamError

_TRANSIENT = frozenset(
    {
        errors_pb2.REASON_UPSTREAM_CONNECTION,
        errors_pb2.REASON_UPSTREAM_TIMEOUT,
        errors_pb2.REASON_UPSTREAM_RATE_LIMITED,
        errors_pb2.REASON_UPSTREAM_OVERLOADED,
    }
)
# Faults of this gateway's account, settings or choice of model: another one may do.
_NOT_OF_THE_REQUEST = frozenset(
    {
        errors_pb2.REASON_UPSTREAM_AUTH,
        errors_pb2.REASON_MODEL_NOT_FOUND,
        errors_pb2.REASON_CONTEXT_LENGTH_EXCEEDED,
    }
)


@dataclass(frozen=True, slots=True)
class FailOn:
    """The caller's own rule of which failures move on to the next step.

    Attributes:
        statuses: HTTP statuses of the provider.
        words: texts in the provider's answer, case folded.
    """

    statuses: frozenset[int]
    words: tuple[str, ...]


class DivergedError(UpstreamError):
    """A model that was to go on with an answer says something else than was sent already."""

    def __init__(self, provider: str) -> None:
        super().__init__(
            errors_pb2.REASON_UPSTREAM_ERROR,
            f"the provider {provider} began another answer than the one that had broken off",
            status=200,
        )


def is_transient(error: UpstreamError) -> bool:
    """Return whether the same request may succeed a moment later."""
    if isinstance(error, DivergedError) or error.limit:
        return False
    if error.reason != errors_pb2.REASON_UPSTREAM_ERROR:
        return error.reason in _TRANSIENT
    # A redirect stays one; what else is no refusal is a server's failure or no answer at all.
    return not (error.status and 300 <= error.status < 400)


def is_silence(error: UpstreamError) -> bool:
    """Return whether the provider answered nothing in time, which a retry would only repeat."""
    return error.reason == errors_pb2.REASON_UPSTREAM_TIMEOUT and error.status is None


def moves_on(error: UpstreamError, fail_on: FailOn | None) -> bool:
    """Return whether the next step is tried after a failure; any other ends the chain."""
    if isinstance(error, DivergedError):
        return True
    if fail_on is None:
        return (
            is_transient(error)
            or error.reason in _NOT_OF_THE_REQUEST
            or error.reason == errors_pb2.REASON_UPSTREAM_ERROR
        )
    if _is_lost(error) or error.status in fail_on.statuses:
        return True
    told = error.body.casefold()
    return any(word in told for word in fail_on.words)


def refuses_signatures(error: UpstreamError) -> bool:
    """Return whether a provider doubts the signature of a thinking block."""
    return error.reason == errors_pb2.REASON_UPSTREAM_REJECTED and "signature" in error.body.lower()


def _is_lost(error: UpstreamError) -> bool:
    """Return whether there was no answer, or one that broke: a connection error or timeout."""
    if error.reason == errors_pb2.REASON_UPSTREAM_ERROR:
        return error.status in (None, 200)
    return error.reason in (
        errors_pb2.REASON_UPSTREAM_CONNECTION,
        errors_pb2.REASON_UPSTREAM_TIMEOUT,
    )
