"""Translate field paths of the canonical request into paths of the caller's body.

The services name fields of the request message: `messages[3].blocks[1].tool_result.blocks[0]`. A
dialect translates such paths by a table of names (`FieldNames`), and by the positions of messages
and blocks in the body (`SourceMap`). Paths are only computed when a field is rejected or dropped;
until then only the discontinuities in the order of messages and blocks are stored.
"""

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from services.common.errors import GatewayError

_STEP = re.compile(r"(fallback_config\.steps\[(\d+)\]\.parameters)\.(.+)", re.DOTALL)
_CHAIN_STEP = re.compile(r"fallback_config\.steps\[(\d+)\](?:\.parameters)?")
_BLOCK = re.compile(
    r"messages\[(\d*)\](?:\.blocks\[(\d*)\](?:\.tool_result\.blocks\[(\d*)\])?)?(?:\.(.+))?",
    re.DOTALL,
)
# Fields of a block that callers write directly in the block.
_KINDS = frozenset(
    (
        *("text", "media", "thinking", "redacted_thinking", "tool_use", "tool_result"),
        *("refusal", "opaque", "server_tool_use", "server_tool_result", "extra"),
    )
)
_TOOL = re.compile(r"tools\[(\d+)\]")
_EXTRA = re.compile(r"\.extra(?=\.|$)")
# Lists whose items are named in a path; of other lists only the field is named.
_COUNTED = frozenset(("content", "tool_calls", "parts"))
# Message index of the system prompt, if it is a field outside of the messages.
SYSTEM = -1
# Message index of a conversation that is one text in place of a list.
ONLY = -2


@dataclass(slots=True)
class SourceMap:
    """The positions of messages and blocks in the caller's body.

    A mapping is stored if the next block is not the next element in the caller's body: after a
    dropped message, at merged messages, at another list. Between two mappings, positions are
    consecutive.

    Attributes:
        mappings: five numbers per mapping, in order; see `add_mapping`.
        steps: the source maps of fallback steps' conversations, by step index.
        chain: the caller's paths of the models of the steps, if they are entries of a field of the
            dialect; see `dialect_chain`.
        tools: the caller's paths of the tools, if a canonical tool is no entry of the list.
        dropped: the caller's paths of fields that no canonical field stands for.
    """

    mappings: "array[int]" = field(default_factory=partial(array, "i"))
    steps: dict[int, "SourceMap"] = field(default_factory=dict)
    chain: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)

    def add_mapping(self, message: int, block: int, index: int, place: int, name: int = 0) -> None:
        """Store the position of a canonical block and those after it.

        Args:
            message: index of the canonical message.
            block: index of the block in it.
            index: index of the caller's message, SYSTEM or ONLY.
            place: index in a list of that message.
            name: index of the list in `FieldNames.lists`.
        """
        self.mappings.extend((message, block, index, place, name))

    def find(self, message: int, block: int) -> tuple[int, int, int]:
        """Return the caller's message index, list index, and list of a block."""
        mappings = self.mappings
        for at in range(len(mappings) - 5, -1, -5):
            if (mappings[at], mappings[at + 1]) <= (message, block):
                first, begins, index, place, name = mappings[at : at + 5]
                if first == message:
                    return index, place + block - begins, name
                return index + message - first, block, 0
        return message, block, 0

    def of_step(self, index: int) -> "SourceMap":
        """Return the source map of a fallback step's conversation, empty at first."""
        return self.steps.setdefault(index, SourceMap())

    def path_of_step(self, path: str) -> str:
        """Return the caller's path for a path of a step that is an entry of the dialect's field."""
        step = _CHAIN_STEP.match(path) if self.chain else None
        if step is None:
            return path
        model = self.chain[int(step[1])]
        within_step = path[step.end() :]
        return model if within_step == ".model" else model.removesuffix(".model") + within_step

    def path_of_tool(self, index: int, canonical: str) -> str:
        """Return the caller's path of a tool; its canonical path if they do not differ."""
        return self.tools[index] if index < len(self.tools) else canonical

    def dump(self) -> dict[str, Any]:
        """Serialize the source map as JSON."""
        return {
            "mappings": self.mappings.tolist(),
            "steps": {str(index): step.dump() for index, step in self.steps.items()},
            "chain": self.chain,
            "tools": self.tools,
            "dropped": self.dropped,
        }

    @classmethod
    def load(cls, dumped: Mapping[str, Any]) -> "SourceMap":
        """Load the source map from JSON."""
        source_map = cls(array("i", dumped["mappings"]), chain=dumped["chain"])
        source_map.tools = dumped["tools"]
        source_map.dropped = dumped["dropped"]
        source_map.steps = {int(index): cls.load(step) for index, step in dumped["steps"].items()}
        return source_map


@dataclass(frozen=True, slots=True)
class FieldNames:
    """A dialect's names of canonical request fields.

    Attributes:
        names: the caller's path by the canonical one, if they differ; `[]` is an index in both,
            and a name also applies to paths below it.
        lists: fields of a message that become blocks, the usual one first; "" for a message that
            becomes a single block.
        messages: the field with the messages.
        system: the field with the system prompt, if it is outside of the messages.
        inner: the field of a tool result with its blocks.
    """

    names: Mapping[str, str]
    lists: Sequence[str] = ("content",)
    messages: str = "messages"
    system: str = "system"
    inner: str = "content"

    def translate(self, path: str, source_map: SourceMap) -> str:
        """Return the caller's path of a canonical field."""
        if step := _STEP.fullmatch(path):
            below = source_map.steps.get(int(step[2]), SourceMap())
            return source_map.path_of_step(f"{step[1]}.{self.translate(step[3], below)}")
        if source_map.chain and _CHAIN_STEP.match(path):
            return source_map.path_of_step(path)
        if path in self.names:
            return self.names[path]
        if source_map.tools and (tool := _TOOL.match(path)):
            within = self._renamed(f"tools[]{path[tool.end() :]}").removeprefix("tools[]")
            return _EXTRA.sub("", source_map.path_of_tool(int(tool[1]), tool[0]) + within)
        if place := _BLOCK.fullmatch(path):
            return self._in_messages(source_map, *place.groups())
        return _EXTRA.sub("", self._renamed(path)).removeprefix("extra.")

    def _renamed(self, path: str) -> str:
        """Return a path with its longest renamed prefix replaced."""
        for canonical_name in sorted(self.names, key=len, reverse=True):
            pattern = re.escape(canonical_name).replace(r"\[\]", r"\[(\d*)\]")
            if match := re.match(rf"{pattern}(?=[.\[]|$)", path):
                name = self.names[canonical_name]
                for index in match.groups():
                    name = name.replace("[]", f"[{index}]", 1)
                return name + path[match.end() :]
        return path

    def _in_messages(
        self,
        source_map: SourceMap,
        message: str,
        block: str | None,
        inner: str | None,
        within_message: str | None,
    ) -> str:
        """Return the caller's path of a message, a block, or a field of either.

        Args:
            source_map: the source map of the request.
            message: index of the message, "" for any.
            block: index of the block, "" for any, None for the message itself.
            inner: index of a block in the block's tool result, likewise.
            within_message: the remaining path.
        """
        name = 0
        if message:
            index, place, name = source_map.find(int(message), int(block or 0))
            message, block = str(index), block and str(place)
        of = self.lists[name]
        if message == str(SYSTEM):
            path = self.system if block is None or not of else f"{self.system}[{block}]"
        elif message == str(ONLY):
            path = self.messages
        elif block is None or not of:
            path = f"{self.messages}[{message}]"
        else:
            path = f"{self.messages}[{message}].{of}" + (f"[{block}]" if of in _COUNTED else "")
        if inner is not None:
            path += f".{self.inner}[{inner}]"
        fields = within_message.split(".") if within_message else []
        if fields and fields[0] in _KINDS:
            del fields[0]
        return _EXTRA.sub("", ".".join([path, *fields]))


@dataclass(slots=True)
class CallerPaths:
    """Translates canonical paths in services' replies into the caller's.

    Attributes:
        names: the names of the caller's dialect.
        source_map: the positions in the caller's body.
    """

    names: FieldNames
    source_map: SourceMap

    def path(self, path: str) -> str:
        """Return the caller's path of a canonical field."""
        return self.names.translate(path, self.source_map)

    def dropped(self, paths: Iterable[str]) -> Iterable[str]:
        """Return the caller's paths of all dropped fields, without duplicates.

        Args:
            paths: the canonical fields among them.
        """
        return dict.fromkeys((*self.source_map.dropped, *map(self.path, paths)))

    def adapted(self, adapted: Iterable[str]) -> Iterator[str]:
        """Return the entries of `RouteInfo.adapted` with the caller's paths."""
        for one in adapted:
            path, _, conversion = one.rpartition(":")
            yield f"{self.path(path)}:{conversion}"

    def translate(self, error: GatewayError) -> GatewayError:
        """Replace the path in a service's error by the caller's."""
        if error.param:
            canonical_path, error.param = error.param, self.path(error.param)
            if error.message.startswith(canonical_path):
                error.message = error.param + error.message[len(canonical_path) :]
        return error

    def dump(self) -> dict[str, Any]:
        """Serialize the paths as JSON, but for the names."""
        return {"source_map": self.source_map.dump()}
