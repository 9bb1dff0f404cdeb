"""Errors for calls that failed below HTTP: no connection, timeouts, broken or oversized answers."""

import socket
import ssl
from collections.abc import Iterable

from gateway.errors.v1 import errors_pb2
from services.common import http
from services.common.errors import UpstreamError
from services.common.settings import Limits
from services.common.text.texts import printable
from services.inference.providers import failures, redaction
from services.inference.providers.idle_reader import SilenceError
from services.inference.providers.sse import SseTooLongError

# Exceptions, besides `UpstreamError`, that `connection_failure` translates.
TRANSLATED = (TimeoutError, http.HttpError, SseTooLongError)
# Messages for failed connections.
_BROKEN: tuple[tuple[type[Exception], str], ...] = (
    (ConnectionRefusedError, "the server of the provider {} refused the connection"),
    (socket.gaierror, "the host name of the provider {} could not be resolved"),
    (ssl.SSLError, "the TLS connection to the provider {} failed"),
)


def connection_failure(
    provider: str, error: Exception, limits: Limits, secrets: Iterable[str]
) -> UpstreamError:
    """Return the error for a failed call; an `UpstreamError` is returned as it is.

    The text of other errors contains addresses: it is only logged, without `secrets`.

    Args:
        provider: the provider's name in the settings.
        error: an `UpstreamError`, or one of `TRANSLATED`.
        limits: the limits, for messages about a limit that was exceeded.
        secrets: texts that the log must not contain.
    """
    match error:
        case UpstreamError():
            return error
        case SilenceError():
            return failures.StalledError(provider)
        case TimeoutError():
            return UpstreamError(
                errors_pb2.REASON_UPSTREAM_TIMEOUT,
                f"the provider {provider} did not respond within the time limit",
            )
        case http.NotHttpError():
            return failures.broken_answer(provider, "did not respond with HTTP")
        case http.CutOffError():
            return failures.cut_off(provider)
        case http.TooLargeError():
            return failures.over_limit(
                provider,
                f"returned more than {limits.max_answer_bytes:,} bytes",
                "limits.max_answer_bytes",
            )
        case SseTooLongError():
            return failures.over_limit(
                provider,
                f"streamed an event of more than {limits.max_sse_line_bytes:,} bytes",
                "limits.max_sse_line_bytes",
            )
        case _:
            problem = next(
                (problem for kind, problem in _BROKEN if isinstance(error.__cause__, kind)),
                "the connection to the provider {} failed",
            )
            words = str(error)
            return UpstreamError(
                errors_pb2.REASON_UPSTREAM_CONNECTION,
                problem.format(provider),
                cause=lambda: printable(redaction.redact(words, secrets)),
            )
