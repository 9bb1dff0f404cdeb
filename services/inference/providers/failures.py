"""Classify the errors of all providers. Pure.

`classify` handles HTTP responses other than 2xx, `in_band` errors inside a stream or a 200
response. Both return an `UpstreamError` whose message is safe to show: it quotes the provider only
about the caller's request, without anything that resembles a key.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson

from gateway.errors.v1 import errors_pb2
from gateway.errors.v1.errors_pb2 import Reason
from services.common.errors import UpstreamError
from services.common.text.texts import printable
from services.inference.providers.context_overflow import CONTEXT_CODES, CONTEXT_WORDS
from services.inference.providers.filter_findings import render_findings
from services.inference.providers.redaction import redact

MAX_ERROR_BODY = 64 << 10  # maximum bytes read of an error response
_KEPT_BODY = 4 << 10  # bytes kept for matching
_MAX_WORDS = 8_000  # maximum characters parsed of a provider's message
_MAX_CAUSE = 500  # maximum characters logged
_MAX_WORD = 200  # maximum characters of a type or code
_MAX_DATE = 64
_MAX_RETRY_AFTER_S = 86_400
_FILTER_CODES = frozenset(
    {"content_filter", "content_policy_violation", "responsibleaipolicyviolation"}
)
_STATUS = re.compile(r"[45][0-9]{2}")
_REFUSALS = frozenset(
    {
        errors_pb2.REASON_UPSTREAM_REJECTED,
        errors_pb2.REASON_CONTENT_FILTER,
    }
)
_OWN_WORD = re.compile(r"\w[\w.\[\]$/-]{0,199}", re.ASCII)
_MAX_CODE = 1_000_000  # upper bound of numeric codes
# Anthropic reports an operator's unpaid bill as an invalid request.
_BILLING_WORDS = "credit balance is too low"
# Google reports a wrong or expired key with status 400.
_KEY_REASONS = frozenset({"API_KEY_INVALID", "API_KEY_EXPIRED"})
_DELAY = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)s")

# Statuses of errors inside a 200 response, by type or code.
_IN_BAND_STATUSES = {
    "invalid_request_error": 400,
    "badrequesterror": 400,
    # Codes of a failed response (Responses API); its other codes are server errors.
    "invalid_prompt": 400,
    "invalid_image": 400,
    "invalid_image_url": 400,
    "failed_to_download_image": 400,
    "image_too_large": 400,
    "image_content_policy_violation": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "timeout_error": 408,
    "overloaded_error": 529,
}


class _ErrorBody(NamedTuple):
    """The known fields of an error body.

    Attributes:
        message: for people.
        kind: the error's type.
        code: its code, which may be a status.
        own_code: the code as the provider wrote it, if it is more specific than the status.
        reason: Google's reason (`google.rpc.ErrorInfo`).
        wait_s: retry delay in seconds, if given (`google.rpc.RetryInfo`).
        filtered: what Azure's content filter found (`innererror`).
    """

    message: str = ""
    kind: str = ""
    code: str = ""
    own_code: str | int = ""
    param: str = ""
    reason: str = ""
    wait_s: float | None = None
    filtered: Mapping[str, Any] = MappingProxyType({})


def classify(
    provider: str,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    secrets: Iterable[str] = (),
    now: Callable[[], float],
) -> UpstreamError:
    """Return the error for a response other than 2xx.

    Args:
        provider: the provider's name in the settings, for the message.
        status: the HTTP status.
        headers: the response headers; names in any case if the mapping is case-insensitive, else
            lower.
        body: the beginning of the body.
        secrets: texts that must not occur in the message.
        now: returns Unix seconds, to interpret a Retry-After date.
    """
    parsed = _read(body)
    reason, message, param = _judge(provider, status, parsed, secrets)
    wait = None
    if status in (408, 425, 429) or status >= 500:
        wait = retry_after(headers, now)
        wait = _whole(parsed.wait_s) if wait is None else wait
    error = UpstreamError(
        reason,
        message,
        status=status,
        body=_kept(body),
        retry_after_s=wait,
        param=param,
        cause=partial(_cause, parsed, tuple(secrets)),
    )
    _add_own_words(error, parsed, secrets)
    return error


def in_band(provider: str, body: bytes, *, secrets: Iterable[str] = ()) -> UpstreamError:
    """Return the error for an error object in a stream or a 200 response.

    Its `status` is the HTTP status that matches the error, if known.
    """
    parsed = _read(body)
    status = _in_band_status(parsed)
    reason, message, param = _judge(provider, status, parsed, secrets)
    error = UpstreamError(
        reason,
        message,
        status=status,
        body=_kept(body),
        retry_after_s=_whole(parsed.wait_s),
        param=param,
        cause=partial(_cause, parsed, tuple(secrets)),
    )
    _add_own_words(error, parsed, secrets)
    return error


def broken_answer(provider: str, problem: str, body: bytes = b"") -> UpstreamError:
    """Return the error for an invalid response; `problem` must not contain text of the provider."""
    return UpstreamError(
        errors_pb2.REASON_UPSTREAM_ERROR,
        f"the provider {provider} {problem}",
        status=200,
        body=_kept(body),
    )


def failed_answer(provider: str, finish_reason: str) -> UpstreamError:
    """Return the error for an answer whose finish reason reports a failure."""
    return broken_answer(provider, f"ended its answer with {finish_reason!r}")


def over_limit(provider: str, problem: str, limit: str) -> UpstreamError:
    """Return the error for a response that exceeds a limit of the gateway.

    Args:
        provider: the provider's name in the settings.
        problem: the gateway's description of the excess.
        limit: the full name of the setting.
    """
    return UpstreamError(
        errors_pb2.REASON_UPSTREAM_ERROR,
        f"the provider {provider} {problem}",
        status=200,
        limit=limit,
    )


class StalledError(UpstreamError):
    """Error raised when a stream stopped after its first content, with its connection open."""

    def __init__(self, provider: str) -> None:
        super().__init__(
            errors_pb2.REASON_UPSTREAM_TIMEOUT,
            f"the provider {provider} stopped in the middle of its answer",
        )


def cut_off(provider: str, body: bytes = b"") -> UpstreamError:
    """Return the error for an incomplete response."""
    return UpstreamError(
        errors_pb2.REASON_UPSTREAM_CONNECTION,
        f"the provider {provider} ended its answer before it was complete",
        body=_kept(body),
    )


def retry_after(headers: Mapping[str, str], now: Callable[[], float]) -> int | None:
    """Return the provider's retry delay in whole seconds: at least 0, at most a day.

    See `wait_of`.
    """
    return _whole(wait_of(headers, now))


def wait_of(headers: Mapping[str, str], now: Callable[[], float]) -> float | None:
    """Return the provider's retry delay in seconds, which may be negative.

    Reads `retry-after-ms` (OpenAI), else `retry-after` as seconds or an HTTP date (RFC 9110,
    section 10.2.3); None if neither is present and valid.
    """
    seconds = _number(headers.get("retry-after-ms", ""))
    if seconds is not None:
        return seconds / 1000
    text = headers.get("retry-after", "")
    seconds = _number(text)
    return _until(text, now) if seconds is None else seconds


def _whole(seconds: float | None) -> int | None:
    return None if seconds is None else math.ceil(min(max(seconds, 0), _MAX_RETRY_AFTER_S))


def _cause(parsed: _ErrorBody, secrets: tuple[str, ...]) -> str:
    """Return the provider's message for the log."""
    names = "/".join(dict.fromkeys(word for word in (parsed.kind, parsed.code) if word))
    words = f"{names}: {parsed.message}" if names and parsed.message else names or parsed.message
    return printable(redact(words[:_MAX_CAUSE], secrets))


def _judge(
    provider: str, status: int, parsed: _ErrorBody, secrets: Iterable[str]
) -> tuple[Reason.ValueType, str, str]:
    """Return the reason, the message and the name of the rejected parameter."""
    kinds = {parsed.kind.lower(), parsed.code.lower()}
    refused = status in (401, 402, 403) or parsed.reason in _KEY_REASONS
    if refused or _BILLING_WORDS in parsed.message:
        return (
            errors_pb2.REASON_UPSTREAM_AUTH,
            f"the provider {provider} rejected the gateway's credentials; the operator must check "
            "the key and the account",
            "",
        )
    if status == 529 or "overloaded_error" in kinds:
        return errors_pb2.REASON_UPSTREAM_OVERLOADED, f"the provider {provider} is overloaded", ""
    if status == 508:
        return (
            errors_pb2.REASON_LOOP_DETECTED,
            f"the address of the provider {provider} leads back to this gateway; the operator "
            "must correct its base_url",
            "",
        )
    if status == 429:
        return (
            errors_pb2.REASON_UPSTREAM_RATE_LIMITED,
            f"the provider {provider} rate-limited the gateway",
            "",
        )
    if status == 408:
        return errors_pb2.REASON_UPSTREAM_TIMEOUT, f"the provider {provider} timed out", ""
    if 400 <= status < 500 and status != 425:
        return _judge_refusal(provider, status, parsed, kinds, secrets)
    if 300 <= status < 400:
        message = (
            f"the provider {provider} answered with a redirect ({status}), which is not followed"
        )
        return errors_pb2.REASON_UPSTREAM_ERROR, message, ""
    return errors_pb2.REASON_UPSTREAM_ERROR, f"the provider {provider} failed (status {status})", ""


def _judge_refusal(
    provider: str, status: int, parsed: _ErrorBody, kinds: set[str], secrets: Iterable[str]
) -> tuple[Reason.ValueType, str, str]:
    if kinds & CONTEXT_CODES or CONTEXT_WORDS.search(parsed.message):
        reason = errors_pb2.REASON_CONTEXT_LENGTH_EXCEEDED
    elif kinds & _FILTER_CODES:
        reason = errors_pb2.REASON_CONTENT_FILTER
    elif status == 404:
        return (
            errors_pb2.REASON_MODEL_NOT_FOUND,
            f"model: the provider {provider} does not have the model configured for this name",
            "model",
        )
    elif status == 413:
        message = f"the request exceeds the maximum size of the provider {provider}"
        return errors_pb2.REASON_TOO_LARGE, message, ""
    else:
        reason = errors_pb2.REASON_UPSTREAM_REJECTED
    words = redact(parsed.message, secrets)
    refused = f"the provider {provider} rejected the request"
    return reason, words or f"{refused} (status {status})", ""


def _add_own_words(error: UpstreamError, parsed: _ErrorBody, secrets: Iterable[str]) -> None:
    """Add the provider's code and param, for clients of the same dialect that rely on them."""
    if error.reason not in _REFUSALS:
        # Errors about the gateway's account or model selection are excluded.
        return
    secrets = tuple(secrets)
    code = parsed.own_code
    if isinstance(code, int) or _is_own_word(code, secrets):
        error.upstream_code = code
    if _is_own_word(parsed.param, secrets):
        error.upstream_param = parsed.param
    if parsed.filtered and error.reason == errors_pb2.REASON_CONTENT_FILTER:
        is_word = partial(_is_own_word, secrets=secrets)
        error.upstream_innererror = render_findings(parsed.filtered, is_word)


def _is_own_word(word: str, secrets: tuple[str, ...]) -> bool:
    return _OWN_WORD.fullmatch(word) is not None and redact(word, secrets) == word


def _read(body: bytes) -> _ErrorBody:
    """Find message, type and code in the error formats of providers and model servers.

    `{"error": {…}}` (OpenAI, Anthropic, Google, the last one also in a list),
    `{"error": "…"}` (Ollama), `{"message": …}` (vLLM, Mistral), `{"detail": …}` (FastAPI);
    any other body is used as text, unless it is an HTML page. A body over `MAX_ERROR_BODY` is
    ignored.
    """
    if len(body) > MAX_ERROR_BODY:
        return _ErrorBody()
    try:
        value: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        text = body.decode("utf-8", "replace").strip()
        return _ErrorBody("" if text.startswith("<") else text[:_MAX_WORDS])
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict) and isinstance(value.get("error"), dict | str):
        value = value["error"]
    if isinstance(value, str):
        return _ErrorBody(value[:_MAX_WORDS])
    if not isinstance(value, dict):
        return _ErrorBody()
    message = value.get("message") or value.get("detail") or ""
    if not isinstance(message, str):
        message = _as_text(message)
    match value.get("metadata"):
        case {"raw": str(raw)} if raw:  # from the provider behind OpenRouter
            message = f"{message}: {raw}"
    inner = value.get("innererror")
    code = value.get("code")
    filtered: Mapping[str, Any] = {}
    if isinstance(inner, dict) and str(inner.get("code", "")).lower() in _FILTER_CODES:
        code, filtered = inner["code"], inner
    return _ErrorBody(
        message[:_MAX_WORDS],
        _word(value.get("type")),
        _word(code),
        _own_code(value.get("code"), "status" in value and not filtered),
        _word(value.get("param")),
        *_details(value.get("details")),
        filtered,
    )


def _details(details: Any) -> tuple[str, float | None]:
    """Parse Google's `details`: the reason of `ErrorInfo`, the delay of `RetryInfo`."""
    reason, wait_s = "", None
    for one in details if isinstance(details, list) else ():
        match one:
            case {"retryDelay": str(delay)} if match := _DELAY.fullmatch(delay):
                wait_s = float(match[1])
            case {"reason": str(reason_name)}:
                reason = reason_name[:_MAX_WORD]
    return reason, wait_s


def _as_text(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        return ""  # nested too deeply


def _word(value: object) -> str:
    return str(value)[:_MAX_WORD] if isinstance(value, str | int) else ""


def _own_code(value: object, beside_status: bool) -> str | int:
    if isinstance(value, str):
        return value[:_MAX_WORD]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MAX_CODE:
        return ""
    # Google's code is the HTTP status, and `status` the error's name.
    return "" if beside_status else value


def _in_band_status(parsed: _ErrorBody) -> int:
    if _STATUS.fullmatch(parsed.code):
        return int(parsed.code)
    for word in (parsed.kind.lower(), parsed.code.lower()):
        if word in _IN_BAND_STATUSES:
            return _IN_BAND_STATUSES[word]
        if word in CONTEXT_CODES or word in _FILTER_CODES:
            return 400
    return 500


def _kept(body: bytes) -> str:
    return body[:_KEPT_BODY].decode("utf-8", "replace")


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _until(text: str, now: Callable[[], float]) -> float | None:
    if len(text) > _MAX_DATE:
        return None
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:  # an HTTP date is GMT by definition
            moment = moment.replace(tzinfo=UTC)
        return (moment - datetime.fromtimestamp(now(), UTC)).total_seconds()
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None  # the library's parser accepts many invalid dates and fails on some of them
