"""Restoring of a tool's property names that were renamed for a provider."""

from collections.abc import Mapping

import msgspec

from gateway.conversation.v1.conversation_pb2 import Block
from gateway.inference.v1.inference_pb2 import Event
from services.inference.stream.filters import Batch
from services.inference.stream.pieces import keep

# The values of members stay as they were written.
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def with_names(arguments: str, names: Mapping[str, str]) -> str:
    """Return the arguments of a call with other names of its members.

    Args:
        arguments: JSON; returned as it is unless it is an object.
        names: the new names, by the old ones.
    """
    try:
        members = _MEMBERS.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return arguments
    if names.keys().isdisjoint(members):
        return arguments
    renamed = {names.get(name, name): value for name, value in members.items()}
    return msgspec.json.encode(renamed).decode()


class PropertyNameFilter:
    """Restores property names in the arguments of calls, which are held back until they are whole.

    Args:
        names: the caller's names by the sent ones, by tool.
    """

    is_done = False

    def __init__(self, names: Mapping[str, Mapping[str, str]]) -> None:
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
