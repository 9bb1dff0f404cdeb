"""Field names of responses, by canonical field, and paths of requests that continue others."""

import re
from collections.abc import Mapping
from typing import Any, Final

from facade.dialects.paths import CallerPaths, FieldNames, SourceMap

_MESSAGE = re.compile(r"messages\[(\d+)\](.*)", re.DOTALL)
_STEP_MESSAGE = re.compile(r"(fallback_config\.steps\[\d+\]\.parameters)\.messages\[.*", re.DOTALL)

# Position of a block in its item, as an index in `FIELD_NAMES.lists`.
CONTENT: Final = 0
WHOLE: Final = 1  # an item, or a text, that is one block

FIELD_NAMES = FieldNames(
    {
        "max_tokens": "max_output_tokens",
        "end_user": "user",
        "thinking": "reasoning.effort",
        "thinking.effort": "reasoning.effort",
        "thinking.budget_tokens": "reasoning.effort",
        "output_format": "text.format",
        "tool_choice.disable_parallel_tool_use": "parallel_tool_calls",
        "tools[].input_schema": "tools[].parameters",
        "tools[].web": "tools[]",
        "tools[].web.allowed_domains": "tools[].filters.allowed_domains",
        "tools[].web.files": "tools[]",
        "logprobs": "include",
        "messages": "input",
        "messages[].blocks[].media.detail": "input[].content[].detail",
        "messages[].blocks[].media.name": "input[].content[].filename",
        "messages[].blocks[].thinking": "input[].summary",
        "messages[].blocks[].thinking.field": "input[].summary",
        "messages[].blocks[].tool_result.is_error": "input[].output",
    },
    lists=("content", ""),
    messages="input",
    system="instructions",
    inner="output",
)


class ContinuedPaths(CallerPaths):
    """Caller paths of a request into which the messages of a conversation were inserted.

    Args:
        names: the names of the caller's dialect.
        source_map: positions in the body, which has only the messages outside of `before`.
        before: indices of the conversation's messages.
        field: the field that names the conversation.
        is_rewritten: whether the messages after `before` were translated again, with items in
            place of references, so that `source_map` does not apply to them.
    """

    __slots__ = ("_before", "_field", "_is_rewritten")

    def __init__(
        self,
        names: FieldNames,
        source_map: SourceMap,
        before: range,
        field: str,
        *,
        is_rewritten: bool,
    ) -> None:
        super().__init__(names, source_map)
        self._before = before
        self._field = field
        self._is_rewritten = is_rewritten

    def path(self, path: str) -> str:
        """Return the caller's path of a canonical field; for a step's messages, its input."""
        if step := _STEP_MESSAGE.fullmatch(path):
            return f"{step[1]}.{self.names.messages}"
        match = _MESSAGE.fullmatch(path)
        if match is None or int(match[1]) < self._before.start:
            return super().path(path)
        place = int(match[1])
        if place in self._before:
            return self._field
        if self._is_rewritten:
            return self.names.messages
        return super().path(f"messages[{place - len(self._before)}]{match[2]}")

    def dump(self) -> dict[str, Any]:
        """Serialize the paths as JSON."""
        before = self._before
        inserted = [before.start, before.stop, self._field, self._is_rewritten]
        return {**super().dump(), "inserted": inserted}


def load_paths(dumped: Mapping[str, Any]) -> CallerPaths:
    """Load the caller paths of a request for a response from JSON."""
    source_map = SourceMap.load(dumped["source_map"])
    if "inserted" not in dumped:
        return CallerPaths(FIELD_NAMES, source_map)
    start, stop, field, is_rewritten = dumped["inserted"]
    before = range(start, stop)
    return ContinuedPaths(FIELD_NAMES, source_map, before, field, is_rewritten=is_rewritten)
