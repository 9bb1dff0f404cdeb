"""Bedrock's errors, by the names of its exceptions. Pure.

A response names its exception in the header `x-amzn-errortype`, a stream in the header of a
message. Source: the service model of `bedrock-runtime` in botocore, and "Common Errors" of the API
reference.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from services.common.errors import UpstreamError
from services.inference.providers import failures

_HEADER = "x-amzn-errortype"
_NAME = re.compile(r"(?:[^:]*#)?([A-Za-z]{1,100})")
# The HTTP statuses of exceptions as other providers use them, by the name in lower case.
_STATUSES = {
    "validationexception": 400,
    "accessdeniedexception": 403,
    "resourcenotfoundexception": 404,
    "modeltimeoutexception": 408,
    "throttlingexception": 429,
    "servicequotaexceededexception": 429,
    # The model failed on a valid request; 424 in the service model.
    "modelerrorexception": 502,
    "modelstreamerrorexception": 502,
    "internalserverexception": 500,
    "serviceunavailableexception": 503,
    # The model is being loaded; 429 in the service model.
    "modelnotreadyexception": 529,
}
# Validation errors about the name of the model, which is the operator's.
_UNKNOWN_MODEL = re.compile(
    r"model identifier is invalid|model ID .{0,200} (?:is not valid|invalid)"
)
# Errors about a signature repeat what was signed, with the session token.
_SIGNED_TEXT = re.compile(r"canonical string|string-to-sign", re.IGNORECASE)
# A signature is accepted within five minutes of its time.
_CLOCK = re.compile(r"[Ss]ignature (?:expired|not yet current)|RequestTimeTooSkewed")


def classify(
    provider: str,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    secrets: Iterable[str] = (),
    now: Callable[[], float],
) -> UpstreamError:
    """Return the error for a response other than 2xx; see `failures.classify`."""
    name = error_name(headers, body)
    status = _STATUSES.get(name.lower(), status)
    text = body.decode("utf-8", "replace")
    if status == 400 and _UNKNOWN_MODEL.search(text):
        status = 404
    if _SIGNED_TEXT.search(text):
        body = orjson.dumps({"message": name})
    error = failures.classify(provider, status, headers, body, secrets=secrets, now=now)
    if is_clock_error(name, text):
        error.message = (
            f"the provider {provider} rejected the signature of the gateway's request because the "
            "clock of the gateway is off by more than five minutes; the operator must set it"
        )
    elif name == "AccessDeniedException":
        error.message = (
            f"model: the gateway's account at the provider {provider} has no access to this model; "
            "the operator must allow bedrock:InvokeModel for it"
        )
    return error


def error_name(headers: Mapping[str, str], body: bytes) -> str:
    """Return the name of the exception of a response, or ""."""
    value: Any = headers.get(_HEADER, "")
    if not value:
        try:
            value = orjson.loads(body).get("__type", "")
        except (orjson.JSONDecodeError, AttributeError):
            return ""
    match = _NAME.match(value) if isinstance(value, str) else None
    return match[1] if match else ""


def is_clock_error(name: str, text: str) -> bool:
    """Return whether a signature was rejected because a clock is off."""
    return name == "RequestTimeTooSkewed" or _CLOCK.search(text) is not None


def error_object(name: str, message: str) -> dict[str, Any]:
    """Return an exception of a stream as an error object for `failures.in_band`."""
    status = _STATUSES.get(name.lower(), 500)
    return {"error": {"type": name, "status": name, "code": status, "message": message}}
