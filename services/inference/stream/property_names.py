"""Restoring of a tool's property names that were renamed for a provider."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from gateway.conversation.v1.conversation_pb2 import Block
from gateway.inference.v1.inference_pb2 import Event
from services.inference.stream.filters import Batch
from services.inference.stream.pieces import keep

# Values other than objects and lists stay as they were written.
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
# Objects and lists inside each other that are renamed; deeper ones stay as they are.
_MAX_DEPTH = 100


class PropertyNames(NamedTuple):
    """Other names of a tool's properties, by their names.

    Attributes:
        outer: of the arguments themselves.
        inner: of objects inside of them, at any depth.
    """

    outer: Mapping[str, str]
    inner: Mapping[str, str]

    def inverted(self) -> "PropertyNames":
        """Return the names by the other ones."""
        return PropertyNames(
            {other: name for name, other in self.outer.items()},
            {other: name for name, other in self.inner.items()},
        )


def with_names(arguments: str, names: PropertyNames) -> str:
    """Return the arguments of a call with other names of their members.

    Args:
        arguments: JSON; returned as it is unless it is an object with such a member.
        names: the new names, by the old ones.
    """
    try:
        members = _MEMBERS.decode(arguments)
        inner = _renamed_members(members, names.inner, _MAX_DEPTH) if names.inner else members
    except (msgspec.DecodeError, RecursionError):
        return arguments
    if inner is members and names.outer.keys().isdisjoint(members):
        return arguments
    renamed = {names.outer.get(name, name): value for name, value in inner.items()}
    return msgspec.json.encode(renamed).decode()


def _renamed_members(
    members: dict[str, msgspec.Raw], names: Mapping[str, str], depth: int
) -> dict[str, msgspec.Raw]:
    """Return an object with other names inside of its members; the same if there are none."""
    changed = {name: _renamed(one, names, depth) for name, one in members.items()}
    return members if all(changed[name] is one for name, one in members.items()) else changed


def _renamed(value: msgspec.Raw, names: Mapping[str, str], depth: int) -> msgspec.Raw:
    """Return a JSON value with other names of its members; the same object if it has none."""
    json = bytes(value).strip()
    if not depth or json[:1] not in (b"{", b"["):
        return value
    if json[:1] == b"[":
        items = _ITEMS.decode(json)
        others = [_renamed(one, names, depth - 1) for one in items]
        if all(one is other for one, other in zip(items, others, strict=True)):
            return value
        return msgspec.Raw(msgspec.json.encode(others))
    members = _MEMBERS.decode(json)
    changed = _renamed_members(members, names, depth - 1)
    if changed is members and names.keys().isdisjoint(members):
        return value
    return msgspec.Raw(
        msgspec.json.encode({names.get(name, name): one for name, one in changed.items()})
    )


class PropertyNameFilter:
    """Restores property names in the arguments of calls, which are held back until they are whole.

    Args:
        names: the caller's names by the sent ones, by tool.
    """

    is_done = False

    def __init__(self, names: Mapping[str, PropertyNames]) -> None:
        self._names = names
        # The tool's name and the arguments of the open calls, by choice and block.
        self._open: dict[tuple[int, int], tuple[str, list[str]]] = {}

    def feed(self, batch: Batch) -> Batch:
        """Return the resulting events, possibly none; see `StreamFilter.feed`."""
        passed: list[Event] = []
        for event in batch:
            kind, place = event.WhichOneof("kind"), (event.choice, event.block)
            if kind == "block_start" and event.block_start.tool_use.name in self._names:
                call = event.block_start.tool_use
                self._open[place] = call.name, [call.input]
                block = Block()
                block.CopyFrom(event.block_start)
                block.tool_use.input = ""
                passed.append(Event(choice=event.choice, block=event.block, block_start=block))
            elif kind == "input" and place in self._open:
                keep(self._open[place][1], event.input)
            elif kind == "block_stop" and place in self._open:
                tool, pieces = self._open.pop(place)
                if arguments := with_names("".join(pieces), self._names[tool]):
                    passed.append(Event(choice=event.choice, block=event.block, input=arguments))
                passed.append(event)
            else:
                passed.append(event)
        return passed
