"""Paths of the canonical request as those of a caller's body.

The services name fields of the request message: `messages[3].blocks[1].tool_result.blocks[0]`. A
dialect translates such paths by a table of names (`FieldNames`), and by where its translator
found each message and block (`Origins`). Nothing is worked out before a field is refused or
dropped; until then there are the places at which messages and blocks do not simply follow each
other.
"""

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from services.common.errors import GatewayError

_STEP = re.compile(r"(fallback_config\.steps\[(\d+)\]\.parameters)\.(.+)", re.DOTALL)
_BLOCK = re.compile(
    r"messages\[(\d*)\](?:\.blocks\[(\d*)\](?:\.tool_result\.blocks\[(\d*)\])?)?(?:\.(.+))?",
    re.DOTALL,
)
# What stands between a block and the fields that callers write beside each other.
_KINDS = frozenset(
    (
        *("text", "media", "thinking", "redacted_thinking", "tool_use", "tool_result"),
        *("refusal", "opaque", "server_tool_use", "server_tool_result", "extra"),
    )
)
_EXTRA = re.compile(r"\.extra(?=\.|$)")
# Lists of which a path names an item; of other fields it names the field.
_COUNTED = frozenset(("content", "tool_calls"))
# In place of a message's index: the field `system`, which stands beside the messages.
SYSTEM = -1


@dataclass(slots=True)
class Origins:
    """Where the messages and blocks of one request stood in its caller's body.

    A mark is noted where the next block is not the next element of the caller's: at a message
    that was left out, at two that became one, at a list of another name. Between two marks
    messages and blocks count on.

    Attributes:
        marks: five numbers a mark, in order; see `mark`.
        steps: those of the conversations of fallback steps, by the step's index.
    """

    marks: "array[int]" = field(default_factory=partial(array, "i"))
    steps: dict[int, "Origins"] = field(default_factory=dict)

    def mark(self, message: int, block: int, index: int, place: int, name: int = 0) -> None:
        """Note where a canonical block, and those after it, stood.

        Args:
            message: index of the canonical message.
            block: index of the block in it.
            index: index of the caller's message, or SYSTEM.
            place: index in a list of that message.
            name: which list, an index of `FieldNames.lists`.
        """
        self.marks.extend((message, block, index, place, name))

    def find(self, message: int, block: int) -> tuple[int, int, int]:
        """Return the caller's message, the place in its list, and which list, of a block."""
        marks = self.marks
        for at in range(len(marks) - 5, -1, -5):
            if (marks[at], marks[at + 1]) <= (message, block):
                first, begins, index, place, name = marks[at : at + 5]
                if first == message:
                    return index, place + block - begins, name
                return index + message - first, block, 0
        return message, block, 0

    def of_step(self, index: int) -> "Origins":
        """Return those of a fallback step's conversation, to be filled."""
        return self.steps.setdefault(index, Origins())

    def dump(self) -> dict[str, Any]:
        """Return it as JSON."""
        steps = {str(index): step.dump() for index, step in self.steps.items()}
        return {"marks": self.marks.tolist(), "steps": steps}

    @classmethod
    def load(cls, dumped: Mapping[str, Any]) -> "Origins":
        """Return what `dump` wrote."""
        origins = cls(array("i", dumped["marks"]))
        origins.steps = {int(index): cls.load(step) for index, step in dumped["steps"].items()}
        return origins


@dataclass(frozen=True, slots=True)
class FieldNames:
    """What a dialect calls the fields of the canonical request.

    Attributes:
        names: the caller's path by the canonical one, where they differ; `[]` stands for an index
            in both, and what lies below a path follows it.
        lists: fields of a message that become blocks, the usual one first; "" for a message that
            is one block by itself.
    """

    names: Mapping[str, str]
    lists: Sequence[str] = ("content",)

    def translate(self, path: str, origins: Origins) -> str:
        """Return the path in the caller's body of a field of the canonical request."""
        if step := _STEP.fullmatch(path):
            below = origins.steps.get(int(step[2]), Origins())
            return f"{step[1]}.{self.translate(step[3], below)}"
        if path in self.names:
            return self.names[path]
        if place := _BLOCK.fullmatch(path):
            return self._in_messages(origins, *place.groups())
        return _EXTRA.sub("", self._renamed(path)).removeprefix("extra.")

    def _renamed(self, path: str) -> str:
        """Return a path with the longest part of it that has another name renamed."""
        for known in sorted(self.names, key=len, reverse=True):
            pattern = re.escape(known).replace(r"\[\]", r"\[(\d*)\]")
            if match := re.match(rf"{pattern}(?=[.\[]|$)", path):
                name = self.names[known]
                for index in match.groups():
                    name = name.replace("[]", f"[{index}]", 1)
                return name + path[match.end() :]
        return path

    def _in_messages(
        self, origins: Origins, message: str, block: str | None, inner: str | None, rest: str | None
    ) -> str:
        """Return the path of a message, of a block of it, or of a field of either.

        Args:
            origins: of the request.
            message: index of the message, "" for any.
            block: index of the block, "" for any, None for the message itself.
            inner: index of a block in the block's result, likewise.
            rest: path of a field below.
        """
        name = 0
        if message:
            index, place, name = origins.find(int(message), int(block or 0))
            message, block = str(index), block and str(place)
        of = self.lists[name]
        if message == str(SYSTEM):
            path = "system" if block is None else f"system[{block}]"
        elif block is None or not of:
            path = f"messages[{message}]"
        else:
            path = f"messages[{message}].{of}" + (f"[{block}]" if of in _COUNTED else "")
        if inner is not None:
            path += f".content[{inner}]"
        fields = rest.split(".") if rest else []
        if fields and fields[0] in _KINDS:
            del fields[0]
        return _EXTRA.sub("", ".".join([path, *fields]))


class CallerPaths:
    """Translates what services say of one request into the words of its caller."""

    __slots__ = ("_names", "_origins")

    def __init__(self, names: FieldNames, origins: Origins) -> None:
        self._names = names
        self._origins = origins

    def path(self, path: str) -> str:
        """Return the path in the caller's body of a field of the canonical request."""
        return self._names.translate(path, self._origins)

    def dropped(self, paths: Iterable[str]) -> Iterable[str]:
        """Return the paths in the caller's body of dropped fields, each once."""
        return dict.fromkeys(map(self.path, paths))

    def adapted(self, adapted: Iterable[str]) -> Iterator[str]:
        """Return what `Served.adapted` says, with paths in the caller's body."""
        for one in adapted:
            path, _, what = one.rpartition(":")
            yield f"{self.path(path)}:{what}"

    def translate(self, error: GatewayError) -> GatewayError:
        """Put the caller's name of the offending field into an error of a service."""
        if error.param:
            given, error.param = error.param, self.path(error.param)
            if error.message.startswith(given):
                error.message = error.param + error.message[len(given) :]
        return error
