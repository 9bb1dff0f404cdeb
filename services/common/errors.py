"""The hierarchy of errors, and their translation to and from gRPC.

::

    GatewayError            error whose message callers may read
    └── UpstreamError       failure of a provider, with the provider's response

A servicer raises a `GatewayError`. `services.common.grpc.interceptors` converts it to a gRPC status
(`to_status`), the calling side converts the status back (`from_rpc_error`), and the facade's
middleware converts it to an HTTP response (`http_status`) in the format of the endpoint.
Messages of other exceptions never leave the process.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import grpc
from google.protobuf import any_pb2
from google.rpc import status_pb2

from gateway.accounts.v1.limits_pb2 import LimitState
from gateway.errors.v1 import errors_pb2
from gateway.errors.v1.errors_pb2 import Attempt, ErrorDetail, Reason
from services.common.text import texts

STATUS_METADATA_KEY = "grpc-status-details-bin"

# Bytes of a message and of a param: both may repeat texts of the caller or of a provider.
MAX_MESSAGE = 2_000
_MAX_PARAM = 512
# Total bytes of the attempts, the provider's headers and the caller's limits, beside the message. A
# status is sent in gRPC metadata, which is limited to 16 kB.
_MAX_ATTEMPTS = 6_000

# The gRPC status and the HTTP status of each reason.
_STATUSES: dict[Reason.ValueType, tuple[grpc.StatusCode, int]] = {
    errors_pb2.REASON_INTERNAL: (grpc.StatusCode.INTERNAL, 500),
    errors_pb2.REASON_INVALID_REQUEST: (grpc.StatusCode.INVALID_ARGUMENT, 400),
    errors_pb2.REASON_INVALID_API_KEY: (grpc.StatusCode.UNAUTHENTICATED, 401),
    errors_pb2.REASON_PERMISSION_DENIED: (grpc.StatusCode.PERMISSION_DENIED, 403),
    errors_pb2.REASON_NOT_FOUND: (grpc.StatusCode.NOT_FOUND, 404),
    errors_pb2.REASON_MODEL_NOT_FOUND: (grpc.StatusCode.NOT_FOUND, 404),
    errors_pb2.REASON_NOT_IMPLEMENTED: (grpc.StatusCode.UNIMPLEMENTED, 501),
    errors_pb2.REASON_UNSUPPORTED: (grpc.StatusCode.INVALID_ARGUMENT, 400),
    errors_pb2.REASON_TOO_LARGE: (grpc.StatusCode.RESOURCE_EXHAUSTED, 413),
    errors_pb2.REASON_RATE_LIMITED: (grpc.StatusCode.RESOURCE_EXHAUSTED, 429),
    errors_pb2.REASON_UNAVAILABLE: (grpc.StatusCode.UNAVAILABLE, 503),
    errors_pb2.REASON_TIMEOUT: (grpc.StatusCode.DEADLINE_EXCEEDED, 504),
    errors_pb2.REASON_CANCELLED: (grpc.StatusCode.CANCELLED, 499),
    errors_pb2.REASON_STORAGE_QUOTA_EXCEEDED: (grpc.StatusCode.PERMISSION_DENIED, 403),
    errors_pb2.REASON_STORAGE_UNAVAILABLE: (grpc.StatusCode.UNAVAILABLE, 503),
    errors_pb2.REASON_RANGE_NOT_SATISFIABLE: (grpc.StatusCode.OUT_OF_RANGE, 416),
    errors_pb2.REASON_CONFLICT: (grpc.StatusCode.ABORTED, 409),
    errors_pb2.REASON_GONE: (grpc.StatusCode.FAILED_PRECONDITION, 410),
    errors_pb2.REASON_BUDGET_EXCEEDED: (grpc.StatusCode.RESOURCE_EXHAUSTED, 402),
    errors_pb2.REASON_MEMORY_BUSY: (grpc.StatusCode.RESOURCE_EXHAUSTED, 429),
    errors_pb2.REASON_MEMORY_QUOTA_EXCEEDED: (grpc.StatusCode.PERMISSION_DENIED, 403),
    errors_pb2.REASON_MEMORY_NOT_SYNCHRONIZED: (grpc.StatusCode.UNAVAILABLE, 503),
    errors_pb2.REASON_MEMORY_STORAGE_EXCEEDED: (grpc.StatusCode.PERMISSION_DENIED, 403),
    errors_pb2.REASON_STORAGE_FULL: (grpc.StatusCode.UNAVAILABLE, 503),
    errors_pb2.REASON_UPSTREAM_REJECTED: (grpc.StatusCode.INVALID_ARGUMENT, 400),
    errors_pb2.REASON_CONTEXT_LENGTH_EXCEEDED: (grpc.StatusCode.INVALID_ARGUMENT, 400),
    errors_pb2.REASON_CONTENT_FILTER: (grpc.StatusCode.INVALID_ARGUMENT, 400),
    errors_pb2.REASON_UPSTREAM_AUTH: (grpc.StatusCode.INTERNAL, 502),
    errors_pb2.REASON_UPSTREAM_RATE_LIMITED: (grpc.StatusCode.RESOURCE_EXHAUSTED, 429),
    errors_pb2.REASON_UPSTREAM_OVERLOADED: (grpc.StatusCode.UNAVAILABLE, 529),
    errors_pb2.REASON_UPSTREAM_ERROR: (grpc.StatusCode.UNAVAILABLE, 502),
    errors_pb2.REASON_UPSTREAM_CONNECTION: (grpc.StatusCode.UNAVAILABLE, 502),
    errors_pb2.REASON_UPSTREAM_TIMEOUT: (grpc.StatusCode.DEADLINE_EXCEEDED, 504),
    errors_pb2.REASON_NO_VISION_MODEL: (grpc.StatusCode.INVALID_ARGUMENT, 400),
    errors_pb2.REASON_LOOP_DETECTED: (grpc.StatusCode.FAILED_PRECONDITION, 508),
}

# Reason and message for a status of gRPC itself, which has no `ErrorDetail`.
_BARE_STATUSES: dict[grpc.StatusCode, tuple[Reason.ValueType, str]] = {
    grpc.StatusCode.CANCELLED: (errors_pb2.REASON_CANCELLED, "the call was cancelled"),
    grpc.StatusCode.DEADLINE_EXCEEDED: (
        errors_pb2.REASON_TIMEOUT,
        "the call exceeded its deadline",
    ),
    grpc.StatusCode.RESOURCE_EXHAUSTED: (
        errors_pb2.REASON_TOO_LARGE,
        "the request or its answer exceeds the gateway's maximum message size",
    ),
    grpc.StatusCode.UNAVAILABLE: (
        errors_pb2.REASON_UNAVAILABLE,
        "a service of the gateway is unavailable; try again",
    ),
    grpc.StatusCode.UNIMPLEMENTED: (
        errors_pb2.REASON_NOT_IMPLEMENTED,
        "this gateway does not implement this call",
    ),
}

# Seconds of `retry_after_s` for errors that ask the caller to wait but give no time.
_DEFAULT_RETRY_AFTER_S = 1
_WAITING = frozenset(
    reason
    for reason, (_, http) in _STATUSES.items()
    if http in (429, 503) or reason == errors_pb2.REASON_UPSTREAM_OVERLOADED
)


class GatewayError(Exception):
    """Error whose message callers may read.

    Attributes:
        reason: one of `gateway.errors.v1.Reason`.
        message: human-readable text. It names the field and the values that the field accepts, and
            contains no secret. Cut to `MAX_MESSAGE` bytes.
        param: path of the invalid field, or ""; cut to 512 bytes. Services use paths of the
            request message, the facade those of the caller's body.
        retry_after_s: whole seconds after which a retry makes sense, or None.
        attempts: attempts at providers, in order.
        article_code: error code of the document editing API, or None.
        limit: name of the setting whose limit was reached (`limits.max_body_bytes`), or ""; counted
            in the metrics of the process that raises the error, and not sent to the caller.
        upstream_code: the `code` of the error response of a provider of OpenAI's dialect, a string
            or a number as in the response, or "".
        upstream_param: the `param` of that response, or ""; a field of the caller's dialect.
        upstream_innererror: what Azure's content filter found, as a JSON object, or b"".
        headers: headers of the provider's response for a caller of its dialect, with names in
            lower case; see `services.common.grpc.dialect_headers`.
        upstream_request_id: the provider's id of the request, or "".
        caller_limits: states of the caller's limits, for rate limit headers.
    """

    def __init__(
        self,
        reason: Reason.ValueType,
        message: str,
        *,
        param: str = "",
        retry_after_s: int | None = None,
        attempts: Sequence[Attempt] = (),
        article_code: int | None = None,
        limit: str = "",
    ) -> None:
        message = texts.fit(message, MAX_MESSAGE)
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.param = texts.fit(param, _MAX_PARAM)
        if retry_after_s is None and reason in _WAITING:
            retry_after_s = _DEFAULT_RETRY_AFTER_S
        self.retry_after_s = retry_after_s
        self.attempts = list(attempts)
        self.article_code = article_code
        self.limit = limit
        self.upstream_code: str | int = ""
        self.upstream_param = ""
        self.upstream_innererror = b""
        self.headers: Mapping[str, str] = {}
        self.upstream_request_id = ""
        self.caller_limits: Sequence[LimitState] = ()

    @property
    def code(self) -> str:
        """The error code that callers see: stable snake_case, such as `model_not_found`."""
        return Reason.Name(self.reason).removeprefix("REASON_").lower()

    @property
    def http_status(self) -> int:
        """The HTTP status code."""
        return _STATUSES[self.reason][1]

    @property
    def grpc_status(self) -> grpc.StatusCode:
        """The gRPC status code."""
        return _STATUSES[self.reason][0]


class UpstreamError(GatewayError):
    """Error raised when a provider fails.

    Attributes:
        status: HTTP status of the provider's response, or None without a response.
        body: beginning of the response body, for pattern matching; never shown or logged.
        upstream_retry_after_s: whole seconds that the provider asked the gateway to wait, or None.
        cause: returns the message of the system or the provider without secrets, for logs only, or
            "" if `message` contains it. A function, since building the text takes time.
    """

    def __init__(
        self,
        reason: Reason.ValueType,
        message: str,
        *,
        status: int | None = None,
        body: str = "",
        retry_after_s: int | None = None,
        param: str = "",
        limit: str = "",
        cause: Callable[[], str] = str,
    ) -> None:
        super().__init__(reason, message, retry_after_s=retry_after_s, param=param, limit=limit)
        self.status = status
        self.body = body
        self.upstream_retry_after_s = retry_after_s
        self.cause = cause


def invalid(param: str, message: str) -> GatewayError:
    """Return the error for an invalid field: 400. `message` names the field and valid values."""
    return GatewayError(errors_pb2.REASON_INVALID_REQUEST, message, param=param)


def conflict(param: str, message: str) -> GatewayError:
    """Return the error for a state that the caller did not expect, or a name in use: 409."""
    return GatewayError(errors_pb2.REASON_CONFLICT, message, param=param)


def unsupported(param: str, message: str) -> GatewayError:
    """Return the error for a field that the target model does not support: 400."""
    return GatewayError(errors_pb2.REASON_UNSUPPORTED, message, param=param)


def model_not_found(name: str, param: str = "model", hint: str = "") -> GatewayError:
    """Return the error for a name of no configured model: 404; `hint` says what to do."""
    return GatewayError(
        errors_pb2.REASON_MODEL_NOT_FOUND,
        f"{param}: unknown model {texts.quoted(name)}; {hint}{'; ' if hint else ''}"
        "GET /v1/models, or `gateway models`, lists the available models",
        param=param,
    )


def invalid_api_key(message: str = "the API key is not valid") -> GatewayError:
    """Return the error for a missing or invalid credential: 401."""
    return GatewayError(errors_pb2.REASON_INVALID_API_KEY, message)


def permission_denied(message: str) -> GatewayError:
    """Return the error for a request that the caller may not make: 403."""
    return GatewayError(errors_pb2.REASON_PERMISSION_DENIED, message)


def unavailable(
    message: str, retry_after_s: int = _DEFAULT_RETRY_AFTER_S, *, limit: str = ""
) -> GatewayError:
    """Return the error for a part of the gateway that is down or has reached a limit: 503."""
    return GatewayError(
        errors_pb2.REASON_UNAVAILABLE, message, retry_after_s=retry_after_s, limit=limit
    )


def internal() -> GatewayError:
    """Return the error for an unexpected exception, without its message: 500."""
    return GatewayError(
        errors_pb2.REASON_INTERNAL,
        "internal error; the gateway's log has the cause under the request id",
    )


def to_status(error: GatewayError) -> tuple[grpc.StatusCode, str, bytes]:
    """Return the gRPC code, message and serialized google.rpc.Status of an error.

    If the attempts exceed the size of a status, only the last ones are included.
    """
    size = sum([len(name) + len(value) for name, value in error.headers.items()])
    size += sum([limit.ByteSize() for limit in error.caller_limits])
    detail = ErrorDetail(
        reason=error.reason,
        message=error.message,
        param=error.param,
        retry_after_s=error.retry_after_s,
        attempts=_last(error.attempts, _MAX_ATTEMPTS - size),
        article_code=error.article_code,
        upstream_param=error.upstream_param,
        upstream_innererror=error.upstream_innererror,
        headers=error.headers,
        upstream_request_id=error.upstream_request_id,
        limits=error.caller_limits,
    )
    if isinstance(error.upstream_code, int):
        detail.upstream_code_number = error.upstream_code
    else:
        detail.upstream_code = error.upstream_code
    packed = any_pb2.Any()
    packed.Pack(detail)
    code = error.grpc_status
    number: int = code.value[0]
    status = status_pb2.Status(code=number, message=error.message, details=[packed])
    return code, error.message, status.SerializeToString()


def _last(attempts: Sequence[Attempt], most: int) -> Sequence[Attempt]:
    size = 0
    for count, attempt in enumerate(reversed(attempts)):
        size += attempt.ByteSize()
        if size > most:
            return attempts[len(attempts) - count :]
    return attempts


def from_rpc_error(error: grpc.aio.AioRpcError) -> GatewayError:
    """Convert a gRPC status of one of the gateway's services to an error.

    A status without an `ErrorDetail` comes from gRPC itself (no connection, deadline, size). Such a
    status that is not in `_BARE_STATUSES` becomes an internal error, without its message.
    """
    detail = _detail(error.trailing_metadata() or ())
    if detail is not None and detail.reason in _STATUSES:
        failure = GatewayError(
            detail.reason,
            detail.message,
            param=detail.param,
            retry_after_s=detail.retry_after_s if detail.HasField("retry_after_s") else None,
            attempts=detail.attempts,
            article_code=detail.article_code if detail.HasField("article_code") else None,
        )
        failure.upstream_code, failure.upstream_param = detail.upstream_code, detail.upstream_param
        if detail.HasField("upstream_code_number"):
            failure.upstream_code = detail.upstream_code_number
        failure.upstream_innererror = detail.upstream_innererror
        failure.headers = dict(detail.headers)
        failure.upstream_request_id = detail.upstream_request_id
        failure.caller_limits = detail.limits
        return failure
    bare = _BARE_STATUSES.get(error.code())
    return GatewayError(*bare) if bare else internal()


def _detail(metadata: Iterable[tuple[str, str | bytes]]) -> ErrorDetail | None:
    for key, value in metadata:
        if key == STATUS_METADATA_KEY and isinstance(value, bytes):
            for packed in status_pb2.Status.FromString(value).details:
                detail = ErrorDetail()
                if packed.Unpack(detail):
                    return detail
    return None
