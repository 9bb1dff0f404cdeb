"""Conversion of function calls into calls of the caller's tools in place of which they stand."""

from collections.abc import Mapping

import orjson

from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES, Block
from gateway.inference.v1.inference_pb2 import Event
from services.inference.client_tools import tool_search
from services.inference.client_tools.client_tool import ClientTool
from services.inference.stream.custom_input import InputDecoder
from services.inference.stream.filters import Batch
from services.inference.stream.pieces import keep


class ClientCallFilter:
    """Turns function calls of an answer into calls of the caller's tools; see `client_tools`.

    The call of a tool search is one item, which is passed on when its arguments are complete.

    Args:
        tools: the caller's tools, by the names of their functions.
    """

    is_done = False

    def __init__(self, tools: Mapping[str, ClientTool]) -> None:
        self._tools = tools
        # The open calls of custom tools and of tool searches, by choice and block.
        self._inputs: dict[tuple[int, int], InputDecoder] = {}
        self._searches: dict[tuple[int, int], tuple[str, list[str]]] = {}

    def feed(self, batch: Batch) -> Batch:
        """Return the resulting events, possibly none; see `StreamFilter.feed`."""
        passed: list[Event] = []
        for event in batch:
            kind, place = event.WhichOneof("kind"), (event.choice, event.block)
            if kind == "block_start" and (tool := self._tools.get(event.block_start.tool_use.name)):
                self._begin(event, tool, passed)
            elif kind == "input" and (decoder := self._inputs.get(place)):
                _add(event, decoder.feed(event.input), passed)
            elif kind == "input" and place in self._searches:
                keep(self._searches[place][1], event.input)
            elif kind == "block_stop" and (decoder := self._inputs.pop(place, None)):
                _add(event, decoder.end(), passed)
                passed.append(event)
            elif kind == "block_stop" and (search := self._searches.pop(place, None)):
                call_id, pieces = search
                passed += (_start(event, tool_search.item_of(call_id, "".join(pieces))), event)
            else:
                passed.append(event)
        return passed

    def _begin(self, event: Event, tool: ClientTool, passed: list[Event]) -> None:
        place, use = (event.choice, event.block), event.block_start.tool_use
        if tool.is_search:
            self._searches[place] = use.id, [use.input]
            return
        block = Block()
        block.CopyFrom(event.block_start)
        block.tool_use.name = tool.name
        if tool.namespace:
            block.extra.Clear()
            block.extra.dialect = DIALECT_RESPONSES
            block.extra.json = orjson.dumps({"namespace": tool.namespace})
        if not tool.is_freeform:
            passed.append(_start(event, block))
            return
        block.tool_use.input, block.tool_use.freeform = "", True
        passed.append(_start(event, block))
        decoder = self._inputs[place] = InputDecoder()
        _add(event, decoder.feed(use.input), passed)


def _start(event: Event, block: Block) -> Event:
    return Event(choice=event.choice, block=event.block, block_start=block)


def _add(event: Event, text: str, passed: list[Event]) -> None:
    if text:
        passed.append(Event(choice=event.choice, block=event.block, input=text))
