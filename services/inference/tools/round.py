"""One round of an answer with tools: the output of one model until it stops. Pure.

The rounds are merged into one answer: block numbers continue, start and end occur once, tokens are
summed, and calls of gateway tools become `server_tool_use` blocks.
"""

from collections.abc import Callable, Sequence

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, ToolUse, Usage
from gateway.inference.v1.inference_pb2 import Choice, Event
from services.common.errors import internal
from services.inference.client_tools import tool_search
from services.inference.client_tools.namespaces import fields_in_namespace
from services.inference.stream.accumulator import Accumulator
from services.inference.tools.usage import add_usage

# An answer with one of these finish reasons does not run its tool calls.
_CUT_OFF = (
    conversation_pb2.FINISH_REASON_MAX_TOKENS,
    conversation_pb2.FINISH_REASON_REFUSAL,
    conversation_pb2.FINISH_REASON_CONTEXT_WINDOW,
    conversation_pb2.FINISH_REASON_STOP_SEQUENCE,
)


class Round:
    """Translates the events of one round.

    Args:
        is_first: whether it is the first round of the answer.
        offset: number of blocks of the previous rounds.
        before: usage of the previous rounds.
        is_own: returns whether a tool name is a gateway tool.
        new_id: creates ids for calls of gateway tools.

    Attributes:
        usage: usage of the answer so far.
    """

    def __init__(
        self,
        *,
        is_first: bool,
        offset: int,
        before: Usage,
        is_own: Callable[[str], bool],
        new_id: Callable[[], str],
    ) -> None:
        self._is_first = is_first
        self._offset = offset
        self._before = before
        self._is_own = is_own
        self._new_id = new_id
        self._accumulator = Accumulator()
        self._choice: Choice | None = None
        self._end = Event()
        self.usage = before

    def feed(self, batch: Sequence[Event]) -> list[Event]:
        """Return the outgoing events of a batch, without the end event."""
        renamed = [self._renamed(event) for event in batch]
        self._accumulator.add(renamed)
        return [out for event in renamed if (out := self._outgoing(event)) is not None]

    @property
    def choice(self) -> Choice:
        """The round's choice, once the round has ended."""
        if self._choice is None:
            self._choice = self._accumulator.response().choices[0]
        return self._choice

    @property
    def end(self) -> Event:
        """The event that ended the round."""
        return self._end

    def calls(self) -> list[ToolUse]:
        """Return the calls of gateway tools to run."""
        if self.choice.finish.reason in _CUT_OFF:
            return []
        return [
            block.server_tool_use
            for block in self.choice.blocks
            if block.HasField("server_tool_use")
        ]

    def calls_others(self) -> bool:
        """Return whether the caller's tools are called too."""
        return any(
            block.HasField("tool_use") or tool_search.is_call(block) for block in self.choice.blocks
        )

    def _renamed(self, event: Event) -> Event:
        """Turn the start of a gateway tool's call into `server_tool_use`; return other events
        unchanged.
        """
        if event.choice:
            raise internal()  # gateway tools require n = 1
        if not event.HasField("block_start") or not event.block_start.HasField("tool_use"):
            return event
        call = event.block_start.tool_use
        if not self._is_own(call.name) or fields_in_namespace(event.block_start):
            return event
        renamed = ToolUse(id=self._new_id(), name=call.name, input=call.input)
        block = Block(server_tool_use=renamed)
        if event.block_start.HasField("extra"):
            block.extra.CopyFrom(event.block_start.extra)
        return Event(block=event.block, block_start=block)

    def _outgoing(self, event: Event) -> Event | None:
        kind = event.WhichOneof("kind")
        if kind == "finish":
            self._end = event
            return None
        if kind == "usage":
            self.usage = add_usage(self._before, event.usage)
            return Event(usage=self.usage)
        if self._is_first:
            return event
        if kind == "start" or (kind == "unknown" and _is_of_start(event.unknown.json)):
            return None
        if kind == "extra_fields" or kind == "unknown" or not self._offset:
            return event
        moved = Event()
        moved.CopyFrom(event)
        moved.block += self._offset
        return moved


def _is_of_start(json: bytes) -> bool:
    """Return whether unknown fields belong to the start event, which is sent only once."""
    return b"message_start" in json and orjson.loads(json).get("type") == "message_start"
