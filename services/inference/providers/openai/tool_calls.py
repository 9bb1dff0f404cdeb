"""Which tool call a piece of a stream belongs to. Pure.

OpenAI numbers the calls of an answer, and sends the id and the name of each in its first piece.
Other servers omit the numbers, number every call 0, omit or repeat ids, send another id with each
piece, or repeat the name. A piece without a usable number continues the call that was begun last.
"""

from dataclasses import dataclass

import orjson

from services.inference.providers.base import Call
from services.inference.providers.openai.blocks import ToolCall

# Pieces with a name after which a call is no longer examined for the end of its arguments: each
# examination reads all of them.
_MAX_EXAMINATIONS = 16


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a tool call.

    Attributes:
        index: the call's number; None if the server sends none.
        position: the position in the list of pieces that arrived at once; None for the only one.
        id: the call's id, or "".
        name: the tool's name or a part of it, or "".
        arguments: a part of the arguments, or "".
    """

    index: int | None
    position: int | None
    id: str
    name: str
    arguments: str


class ReceivedCalls:
    """The tool calls of one choice."""

    __slots__ = ("_by_index", "_by_position", "_examinations", "_last")

    def __init__(self) -> None:
        self._by_index: dict[int, ToolCall] = {}
        self._by_position: dict[int, ToolCall] = {}
        self._last: ToolCall | None = None
        self._examinations = 0  # of the arguments of the call that was begun last

    def add(self, piece: Piece, call: ToolCall) -> None:
        """Add a new call, to which later pieces with the place of its first piece belong."""
        self._last = call
        self._examinations = 0
        if piece.index is not None:
            self._by_index[piece.index] = call
        if piece.position is not None:
            self._by_position[piece.position] = call

    def call_of(self, piece: Piece) -> ToolCall | None:
        """Return the call that a piece continues; None if the piece begins one."""
        if piece.index is not None:
            call = self._by_index.get(piece.index)
        elif piece.position is not None:
            call = self._by_position.get(piece.position)
        else:
            call = self._last
        if call is None or self._is_another(call, piece):
            return None
        return call

    def _is_another(self, call: ToolCall, piece: Piece) -> bool:
        """Return whether a piece begins another call than the last one with its number."""
        if not piece.name:
            return False
        if piece.id and call.id and piece.id != call.id:
            # LM Studio sends another id with each piece of a call.
            return piece.name != call.name or not call.has_arguments() or self._is_whole(call)
        if not call.name or not call.has_arguments():
            return False
        begins = piece.name != call.name or piece.arguments.lstrip().startswith("{")
        return begins and self._is_whole(call)

    def _is_whole(self, call: ToolCall) -> bool:
        self._examinations += 1
        return self._examinations <= _MAX_EXAMINATIONS and call.is_received()


def may_be_tool(call: Call, name: str) -> bool:
    """Return whether a name may be that of one of a request's tools, not only a part of one."""
    if call.lazy is None:
        return not call.request.tools or any(tool.name == name for tool in call.request.tools)
    tools = call.lazy.json_of("tools")
    # Searched in place of parsing the tools, for each call.
    return not tools or orjson.dumps(name) in tools
