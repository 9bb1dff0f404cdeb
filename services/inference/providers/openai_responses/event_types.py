"""Event types of OpenAI's responses, and detection of failed answers. Pure."""

from collections.abc import Mapping
from typing import Any, Literal

from services.common.errors import UpstreamError
from services.inference.providers import failures
from services.inference.providers.bounds import dump
from services.inference.providers.opaque_json import Json
from services.inference.providers.protocols import ErrorFactory

TextKind = Literal["text", "refusal", "thinking", "input"]

DONE = b"[DONE]"
# Statuses of a complete response.
OVER = ("completed", "incomplete")
ENDS = frozenset(f"response.{status}" for status in OVER)
# Events that report only that the answer has not begun or not ended.
SILENT = frozenset({"response.created", "response.in_progress", "response.queued"})
# Events that add text to a block, with the kind of the text. Two events of a type with the same
# index differ only in the text.
DELTAS: Mapping[str, TextKind] = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "refusal",
    "response.reasoning_summary_text.delta": "thinking",
    "response.reasoning_text.delta": "thinking",
    "response.function_call_arguments.delta": "input",
    "response.custom_tool_call_input.delta": "input",
}
# Exceptions that values of wrong types cause in the parsing code, at any depth.
MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_FAILED = "response.failed"
# The indices of an event, with which clients find what it belongs to.
_INDICES = ("output_index", "content_index", "summary_index", "annotation_index")
_MAX_INDEX = 1 << 31
_MAX_NUMBER = 1 << 53


def extract_delta(event: Any) -> str | None:
    """Return the text that an event adds, if it does nothing else; see `ExtractDelta`."""
    match event:
        case {"type": str(kind), "delta": str(text)} if kind in DELTAS:
            for value in event.values():
                if value and isinstance(value, dict | list):
                    return None
            return text
    return None


def check_event(kind: str, event: Json) -> None:
    """Check the parts of an event by which clients tell what it is and where it belongs.

    Args:
        kind: the event's type, which is also written into a line of its own.
        event: the parsed data.

    Raises:
        ValueError: one of them is malformed.
    """
    if not kind.isprintable() or not kind or event.get("type", kind) != kind:
        raise ValueError("no type")
    # Without a number it is numbered by the gateway.
    if not _is_number(event.get("sequence_number") or 0, _MAX_NUMBER):
        raise ValueError("no number")
    if kind in DELTAS and not isinstance(event.get("delta"), str):
        raise ValueError("no text")
    for name in _INDICES:
        if name in event and not _is_number(event[name], _MAX_INDEX):
            raise ValueError("no index")


def _is_number(value: object, below: int) -> bool:
    return type(value) is int and 0 <= value < below


def failure_of(kind: str, event: Json, data: bytes, errors: ErrorFactory) -> UpstreamError | None:
    """Return the error that an event reports, None for any other event.

    Args:
        kind: the event's type.
        event: the parsed data.
        data: the data.
        errors: creates errors from the provider's error objects.

    Raises:
        LookupError, AttributeError: the event is malformed.
    """
    if kind == "error" or (event.get("error") and "response" not in event):
        return errors.in_band(data)
    if kind != _FAILED:
        return None
    error = event["response"].get("error")
    if not error:
        return failures.broken_answer(errors.name, "reported that its answer failed", data)
    return errors.in_band(dump({"error": error}))
