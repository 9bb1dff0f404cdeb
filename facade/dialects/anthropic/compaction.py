"""Compaction of conversations: `compaction`, `context_management`, and blocks with a summary.

Source: Anthropic's documentation, "Compaction".
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from gateway.inference.v1.inference_pb2 import Compaction, GenerateRequest
from services.common.errors import invalid
from services.common.messages.sealed_summary import REPLACING, SUMMARY

COMPACTION = "compaction"
CONTEXT_MANAGEMENT = "context_management"
_EDIT = "compact_20260112"
_MAX_TOKENS = 1 << 53
# A text that takes the place of a block that is left out.
_NOTHING = {"type": "text", "text": ""}


def set_compaction(request: GenerateRequest, fields: Mapping[str, Any], prefix: str) -> None:
    """Set whether and when a conversation is compacted, by a body's fields without a name.

    Args:
        request: the request; modified.
        fields: the fields, not validated.
        prefix: prefix of their paths.

    Raises:
        GatewayError: invalid, the trigger of an edit is not a number of tokens.
    """
    match fields.get(CONTEXT_MANAGEMENT):
        case {"edits": list(edits)}:
            for index, edit in enumerate(edits):
                if isinstance(edit, dict) and edit.get("type") == _EDIT:
                    path = f"{prefix}{CONTEXT_MANAGEMENT}.edits[{index}].trigger.value"
                    request.compaction.mode = Compaction.MODE_THRESHOLD
                    request.compaction.threshold_tokens = _trigger(edit.get("trigger"), path)
                    request.compaction.pauses = edit.get("pause_after_compaction") is True
                    request.compaction.instructions = _text(edit.get("instructions"))
    config = fields.get(COMPACTION)
    if is_summarizing(config):
        request.compaction.Clear()
        request.compaction.mode = Compaction.MODE_ONLY
        request.compaction.instructions = _text(config.get("instructions"))


def is_summarizing(compaction: object) -> TypeGuard[dict[str, Any]]:
    """Return whether a value of `compaction` is one that the gateway understands."""
    return isinstance(compaction, dict) and compaction.get("type") == "summarize"


def summary_place(messages: Sequence[Mapping[str, Any]]) -> tuple[int, int, str] | None:
    """Return the place of the last summary by the gateway, and its text; None without any.

    Everything before it, except messages of the system, is left out: the summary replaces it.
    """
    for index in range(len(messages) - 1, -1, -1):
        content = messages[index].get("content")
        for position, block in enumerate(content if isinstance(content, list) else ()):
            match block:
                case {"type": "compaction", "content": str(text), "encrypted_content": str(sealed)}:
                    if sealed.startswith(REPLACING):
                        return index, position, f"{SUMMARY}\n{text}"
    return None


def after_summary(content: list[Any], position: int) -> list[Any]:
    """Return content without what a summary at a position replaces; positions stay."""
    return [_NOTHING] * (position + 1) + content[position + 1 :]


def _trigger(trigger: object, path: str) -> int:
    match trigger:
        case {"type": "input_tokens", "value": value}:
            pass
        case _:
            return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MAX_TOKENS:
        raise invalid(path, f"{path}: must be a positive number of tokens")
    return value


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""
