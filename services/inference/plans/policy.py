"""The fallback policy: which failures are retried, when, and which lead to the next step. Pure."""

from dataclasses import dataclass
from typing import NamedTuple, TypeGuard

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError, UpstreamError
from services.inference.circuit_breaker import Uniform
from services.inference.providers.failures import StalledError
from services.inference.stream.refusals import RefusedAnswerError
from services.inference.stream.replay import DivergedError

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0

_TRANSIENT = frozenset(
    {
        errors_pb2.REASON_UPSTREAM_CONNECTION,
        errors_pb2.REASON_UPSTREAM_TIMEOUT,
        errors_pb2.REASON_UPSTREAM_RATE_LIMITED,
        errors_pb2.REASON_UPSTREAM_OVERLOADED,
    }
)
# Faults of the gateway's account or settings, or of the chosen model: another model may answer.
_NOT_OF_THE_REQUEST = frozenset(
    {
        errors_pb2.REASON_UPSTREAM_AUTH,
        errors_pb2.REASON_MODEL_NOT_FOUND,
        errors_pb2.REASON_CONTEXT_LENGTH_EXCEEDED,
    }
)
# Those of them that are faults of one account or deployment, not of the model.
_OF_THE_DEPLOYMENT = frozenset({errors_pb2.REASON_UPSTREAM_AUTH, errors_pb2.REASON_MODEL_NOT_FOUND})

# Texts of errors about the signature of a thinking block, or about a reasoning item of OpenAI's
# responses that cannot be decrypted or is not encrypted.
_OF_SIGNATURES = ("signature", "encrypted content", "items are not persisted")


@dataclass(frozen=True, slots=True)
class FallbackRule:
    """The caller's rule for failures that lead to the next step.

    Attributes:
        statuses: HTTP status codes of the provider.
        words: texts in the provider's response body, case-folded.
    """

    statuses: frozenset[int]
    words: tuple[str, ...]


class Retries(NamedTuple):
    """The number of retries of a step, and the delays before them.

    Attributes:
        most: maximum attempts after the first.
        factor: backoff factor between one delay and the next, at least 1.
        jitter_s: upper bound of the random addition to a delay.
    """

    most: int = 0
    factor: float = 2.0
    jitter_s: float = 0.0

    def delay(self, retry: int, uniform: Uniform) -> float:
        """Return the delay in seconds before a retry; retries are counted from 0."""
        try:
            grown = FIRST_DELAY_S * self.factor**retry
        except OverflowError:
            return LONGEST_DELAY_S
        return min(grown + uniform(0.0, self.jitter_s), LONGEST_DELAY_S)


def out_of_time() -> GatewayError:
    """Return the error of a chain whose `global_timeout_ms` has passed: 504."""
    return GatewayError(
        errors_pb2.REASON_TIMEOUT,
        "fallback_config.global_timeout_ms: the time limit of the whole chain was exceeded",
    )


def is_out_of_time(error: BaseException) -> TypeGuard[GatewayError]:
    """Return whether an error is one made by `out_of_time`."""
    return isinstance(error, GatewayError) and error.reason == errors_pb2.REASON_TIMEOUT


def is_transient(error: UpstreamError) -> bool:
    """Return whether the same request may succeed a moment later."""
    if isinstance(error, DivergedError) or error.limit:
        return False
    if error.reason != errors_pb2.REASON_UPSTREAM_ERROR:
        return error.reason in _TRANSIENT
    # A redirect is permanent. Any other status here is a server error, or there was no response.
    return not (error.status and 300 <= error.status < 400)


def is_silence(error: UpstreamError) -> bool:
    """Return whether the provider sent no response in time, which a retry would only repeat."""
    return error.reason == errors_pb2.REASON_UPSTREAM_TIMEOUT and error.status is None


def leads_to_next_step(error: UpstreamError, rule: FallbackRule | None) -> bool:
    """Return whether a failure leads to the next step; any other ends the chain."""
    if isinstance(error, DivergedError | RefusedAnswerError):
        return True
    if rule is None:
        return (
            is_transient(error)
            or error.reason in _NOT_OF_THE_REQUEST
            or error.reason == errors_pb2.REASON_UPSTREAM_ERROR
        )
    if _is_lost(error) or error.status in rule.statuses:
        return True
    folded_body = error.body.casefold()
    return any(word in folded_body for word in rule.words)


def may_succeed_elsewhere(error: UpstreamError) -> bool:
    """Return whether another deployment of the model may answer where this one failed."""
    if is_silence(error):
        # Before the first content, the time of the step is used up.
        return isinstance(error, StalledError)
    return is_transient(error) or error.reason in _OF_THE_DEPLOYMENT


def refuses_signatures(error: UpstreamError) -> bool:
    """Return whether a provider rejects the signature of a thinking block."""
    if error.reason != errors_pb2.REASON_UPSTREAM_REJECTED:
        return False
    body = error.body.lower()
    return any(word in body for word in _OF_SIGNATURES)


def _is_lost(error: UpstreamError) -> bool:
    """Return whether there was no answer or it broke off: a connection error or timeout."""
    if error.reason == errors_pb2.REASON_UPSTREAM_ERROR:
        return error.status in (None, 200)
    return error.reason in (
        errors_pb2.REASON_UPSTREAM_CONNECTION,
        errors_pb2.REASON_UPSTREAM_TIMEOUT,
    )
