"""Rules for every answer to an invalid request."""

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.attacks.structure import Attempt

MAX_MESSAGE = 2_048
# A busy machine may take as long for an answer.
_LITTLE_MS = 1_000
_STEP = re.compile(r"\[(\d+)\]|([^.\[]+)")
# Parts of a request beside its body that an error can name.
_OTHERS = frozenset({"memory_id", "body", "Content-Type"})


def fault(attempt: Attempt, status: int, headers: Mapping[str, str], answer: bytes) -> str:
    """Return what is wrong with an answer, "" where nothing is."""
    if 200 <= status < 300:
        return ""
    if status == 504 and _has_no_time(attempt.body):
        return ""
    if status >= 500 and status != 501 and not (status == 503 and "Retry-After" in headers):
        return f"status {status}: {answer[:500]!r}"
    try:
        body = json.loads(answer)
        message, place = _READ[attempt.api_format](body)
    except (KeyError, TypeError, ValueError) as error:
        return f"not the endpoint's format ({error!r}): {answer[:500]!r}"
    if not isinstance(message, str) or not message:
        return f"no message: {answer[:500]!r}"
    if len(message.encode()) > MAX_MESSAGE:
        return f"a message of {len(message.encode())} bytes: {answer[:500]!r}"
    if status == 400 and place and attempt.api_format != "envelope" and attempt.body is not None:
        return _wrong_place(place, attempt.body)
    return ""


def _has_no_time(body: bytes | None) -> bool:
    """Return whether a request asks for an answer sooner than a provider may have one."""
    try:
        bound = json.loads(body or b"")["fallback_config"]["global_timeout_ms"]
    except (KeyError, TypeError, ValueError):
        return False
    return isinstance(bound, int) and bound < _LITTLE_MS


def _openai(body: Any) -> tuple[Any, str]:
    error = body["error"]
    assert error.keys() >= {"message", "type", "param", "code"}, body
    return error["message"], error["param"] or ""


def _anthropic(body: Any) -> tuple[Any, str]:
    assert body["type"] == "error" and body["request_id"], body
    error = body["error"]
    assert error.keys() >= {"type", "message"}, body
    return error["message"], error.get("param", "")


def _envelope(body: Any) -> tuple[Any, str]:
    assert body.keys() == {"code", "message", "data"} and body["data"] == {}, body
    assert isinstance(body["code"], int), body
    return body["message"], ""


_READ = {"A": _openai, "B": _anthropic, "envelope": _envelope}


def _wrong_place(place: str, body: bytes) -> str:
    """Return what is wrong with the path that an error names: its parent must be there."""
    if place in _OTHERS or len(place) > 100:
        return ""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return ""  # the error is about the text, not about a field
    steps = [int(index) if index else name for index, name in _STEP.findall(place)]
    for step in steps[:-1]:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return f"names {place}, whose parent is not in the body"
    return ""
