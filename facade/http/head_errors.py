"""Responses to malformed, oversized and unfinished heads, for which no request object exists.

They are complete HTTP responses in the format of the path, or in OpenAI's if there is no path. They
do not quote the request: a malformed head may contain a whole API key, a malformed body a prompt.
"""

from email.utils import formatdate

from aiohttp.http_exceptions import HttpProcessingError, LineTooLong

from facade import credentials
from facade.context import Context
from facade.credentials import ApiFormat
from facade.dialects.errors import render_error
from facade.http.responses import STATUS_LINES
from facade.http_errors import HttpExchangeError
from services.common.errors import GatewayError, unavailable
from services.common.ids import new_request_id
from services.common.process import logs
from services.common.settings import Limits

# Prefix of aiohttp's message for too many header fields, which has no exception type.
_TOO_MANY_FIELDS = "Too many headers"


class BadHeadError(HttpProcessingError):
    """Error raised by the parser for a rejected head.

    Attributes:
        failure: the error for the client.
        path: path of the request, or "" if it could not be read.
    """

    def __init__(self, failure: GatewayError, path: str) -> None:
        super().__init__(code=failure.http_status, message=failure.message)
        self.failure = failure
        self.path = path


def classify(error: Exception, limits: Limits) -> GatewayError:
    """Return the error for an exception of aiohttp's parser."""
    if isinstance(error, LineTooLong):
        return head_too_large(limits.max_head_bytes)
    if isinstance(error, HttpProcessingError) and error.message.startswith(_TOO_MANY_FIELDS):
        return HttpExchangeError(
            431,
            "too_many_header_fields",
            f"the request has more than {limits.max_header_fields:,} header fields",
            limit="limits.max_header_fields",
        )
    return HttpExchangeError(
        400,
        "malformed_request",
        "the request is not well-formed HTTP/1.1 (RFC 9112): check its request line, its header"
        " fields, and Content-Length or the sizes of its chunks",
    )


def head_too_large(max_bytes: int) -> GatewayError:
    """Return the error for a head with more than `max_bytes` bytes: 431."""
    return HttpExchangeError(
        431,
        "head_too_large",
        f"the request line and header fields have more than {max_bytes:,} bytes",
        limit="limits.max_head_bytes",
    )


def unsupported_version() -> GatewayError:
    """Return the error for an unsupported version of HTTP: 400."""
    return HttpExchangeError(
        400, "unsupported_http_version", "unsupported HTTP version; use HTTP/1.1 or HTTP/1.0"
    )


def chunked_http_1_0() -> GatewayError:
    """Return the error for HTTP/1.0 with Transfer-Encoding (RFC 9112, section 6.1): 400."""
    return HttpExchangeError(
        400,
        "malformed_request",
        "Transfer-Encoding: requires HTTP/1.1; send Content-Length with HTTP/1.0",
        param="Transfer-Encoding",
    )


def head_timed_out(seconds: float) -> GatewayError:
    """Return the error for a head that takes too long: 408."""
    return HttpExchangeError(
        408,
        "head_timeout",
        f"the request line and header fields were not received within {seconds:g} seconds",
        limit="limits.head_timeout_s",
    )


def too_many_connections() -> GatewayError:
    """Return the error for a connection beyond the maximum: 503. `Connections` counts it."""
    return unavailable("the gateway has reached its maximum number of connections; try again")


def too_many_heads() -> GatewayError:
    """Return the error for a head that exceeds the limit of all unfinished heads: 503."""
    return unavailable(
        "the gateway has reached its limit for unfinished request heads; try again",
        limit="limits.max_head_bytes",
    )


def path_of(begun: bytes) -> str:
    """Return the path in the beginning of a request, or ""."""
    line = begun.lstrip(b"\r\n").partition(b"\n")[0]
    target = line.partition(b" ")[2].partition(b" ")[0]
    return target.partition(b"?")[0].decode("latin-1") if target.startswith(b"/") else ""


def refuse(context: Context, failure: GatewayError, path: str) -> bytes:
    """Return the response for a failure without an exchange; count and log it.

    The path is "" if it could not be read.
    """
    request_id = new_request_id()
    token = logs.request_id.set(request_id)
    context.access_log.answered(
        "", "unknown", failure.http_status, 0.0, lambda: {"error": failure.code}
    )
    logs.request_id.reset(token)
    context.metrics.answered("unknown", failure.http_status, 0.0)
    if failure.limit:
        context.metrics.limits_reached.labels(failure.limit).inc()
    return _response(failure, path, request_id, context.clock.now())


def _response(failure: GatewayError, path: str, request_id: str, now: float) -> bytes:
    """Return the response for a failure, with `Connection: close`; `now` in Unix seconds."""
    status, body = render_error(
        credentials.rules_for(path).api_format or ApiFormat.OPENAI, failure, request_id
    )
    retry = "" if failure.retry_after_s is None else f"Retry-After: {failure.retry_after_s}\r\n"
    head = (
        f"{STATUS_LINES[status]}\r\n"
        "Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n"
        f"Date: {formatdate(now, usegmt=True)}\r\n"
        f"x-request-id: {request_id}\r\nrequest-id: {request_id}\r\n"
        f"{retry}Connection: close\r\n\r\n"
    )
    return head.encode("ascii") + body
