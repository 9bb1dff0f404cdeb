"""Types of the events of OpenAI's responses, and what says that an answer failed. Pure."""

from collections.abc import Mapping
from typing import Any, Literal

from services.common.errors import UpstreamError
from services.inference.providers import failures
from services.inference.providers.bounds import dump
from services.inference.providers.protocols import Failures
from services.inference.providers.request_fields import Json

TextKind = Literal["text", "refusal", "thinking", "input"]

DONE = b"[DONE]"
# How a response can be that is an answer.
OVER = ("completed", "incomplete")
ENDS = frozenset(f"response.{status}" for status in OVER)
# Events that say nothing but that the answer is coming.
SILENT = frozenset({"response.created", "response.in_progress", "response.queued"})
# Events that add a text to a block, and the kind of it. Of two with one index, the text is all
# that makes a difference.
DELTAS: Mapping[str, TextKind] = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "refusal",
    "response.reasoning_summary_text.delta": "thinking",
    "response.reasoning_text.delta": "thinking",
    "response.function_call_arguments.delta": "input",
    "response.custom_tool_call_input.delta": "input",
}
# What reading a value raises that has another type than it has to have, at whatever depth.
MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_FAILED = "response.failed"


def said_by(event: Any) -> str | None:
    """Return the text that an event adds, if it does nothing else; see `delta_templates.Said`."""
    match event:
        case {"type": str(kind), "delta": str(text)} if kind in DELTAS:
            for value in event.values():
                if value and isinstance(value, dict | list):
                    return None
            return text
    return None


def failure_of(kind: str, event: Json, data: bytes, upstream: Failures) -> UpstreamError | None:
    """Return the failure that an event stands for, None for any other event.

    Args:
        kind: its type.
        event: its data, parsed.
        data: its data.
        upstream: makes failures.

    Raises:
        LookupError, AttributeError: it is malformed.
    """
    if kind == "error" or (event.get("error") and "response" not in event):
        return upstream.in_band(data)
    if kind != _FAILED:
        return None
    error = event["response"].get("error")
    if not error:
        return failures.broken_answer(upstream.name, "ended its answer as failed", data)
    return upstream.in_band(dump({"error": error}))
