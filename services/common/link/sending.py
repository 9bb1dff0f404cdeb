"""How an end of a link sends: what each call has to send, and whose turn it is.

A batch takes at most one fragment's worth of each call, in turn, so that a large message
holds nobody up; what waits for its turn or for credit waits in its own call, and whoever
writes there waits with it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sized

from services.common.link import frames
from services.common.link.frames import BATCH, FRAGMENT, MESSAGE_COST, WINDOW

# Bytes that a call may have waiting before whoever writes has to wait.
_HIGH = 128 << 10
# Bytes that all calls of a link may have waiting before each has one message there at most.
_ALL_HIGH = 4 << 20
# Messages up to this size are not worth a turn, while there are few enough of them.
_SMALL = 4 << 10
_FEW = FRAGMENT
# With more calls than this in flight, frames wait so many turns of the loop for company.
_CORK_ABOVE = 2
_CORK_TURNS = 3


class Outbox:
    """Everything that one end of a link has to send."""

    def __init__(self, calls: Sized) -> None:
        """Begin with nothing; `calls` says how many are in flight."""
        self._calls = calls
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes | memoryview] = []
        self.size = 0
        # Bytes of messages that wait in all calls.
        self.unsent = 0
        self._turns: deque[Outgoing] = deque()
        self._idle: asyncio.Future[None] | None = None

    def add(self, *parts: bytes) -> None:
        """Send frames with the next batch."""
        self._parts += parts
        for part in parts:
            self.size += len(part)
        if self._idle is not None:
            self._wake()

    def queue(self, outgoing: "Outgoing") -> None:
        """Give a call its turn once."""
        self._turns.append(outgoing)
        if self._idle is not None:
            self._wake()

    @property
    def has_turns(self) -> bool:
        """Whether calls wait for their turn."""
        return bool(self._turns)

    async def pump(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        """Send what there is through `write`, batch by batch, until cancelled."""
        while True:
            if not self._parts and not self._turns:
                self._idle = self._loop.create_future()
                await self._idle
            if len(self._calls) > _CORK_ABOVE:
                for _ in range(_CORK_TURNS):
                    if self.size >= BATCH:
                        break
                    await asyncio.sleep(0)
            if batch := self.take():
                await write(batch)

    def take(self) -> bytes:
        """Give the next batch; empty when what had a turn has been dropped."""
        parts, size = self._parts, self.size
        self._parts, self.size = [], 0
        turns = self._turns
        for number in range(len(turns)):
            # The first one always gets its turn, however much there was to send at once.
            if number and size >= BATCH:
                break
            outgoing = turns.popleft()
            size += outgoing.emit(parts)
            if outgoing.keeps_turn():
                turns.append(outgoing)
        return b"".join(parts)

    def _wake(self) -> None:
        idle, self._idle = self._idle, None
        if idle is not None and not idle.done():
            idle.set_result(None)


class Outgoing:
    """What one end of one call has to send, in order."""

    __slots__ = (
        "_has_turn",
        "_outbox",
        "_queue",
        "_sent_of_first",
        "_unsent",
        "_writers",
        "call",
        "credit",
        "is_unheard_of",
        "on_empty",
    )

    def __init__(self, outbox: Outbox, call: int) -> None:
        self.call = call
        self.credit = WINDOW
        self._outbox = outbox
        # Whole frames, and messages that are yet to be cut into frames (True).
        self._queue: deque[tuple[bool, bytes]] | None = None
        self._sent_of_first = 0
        self._unsent = 0
        self._has_turn = False
        self._writers: list[asyncio.Future[None]] = []
        # Whether the frame that opens the call is still here.
        self.is_unheard_of = False
        # Called once nothing is left, where somebody waits for that.
        self.on_empty: Callable[[], None] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether everything is on its way."""
        return not self._queue

    @property
    def is_full(self) -> bool:
        """Whether a writer should wait, with `drained`."""
        unsent = self._unsent
        return unsent >= _HIGH or (unsent > 0 and self._outbox.unsent >= _ALL_HIGH)

    def open(self, frame: bytes) -> None:
        """Send the frame that opens the call, behind those of the calls made before it."""
        if self._outbox.size < _FEW and not self._outbox.has_turns:
            self._outbox.add(frame)
        else:
            self.is_unheard_of = True
            self._append(False, frame)

    def send_frame(self, frame: bytes) -> None:
        """Send a frame behind what was sent before."""
        if not self._queue and self._outbox.size < _FEW:
            self._outbox.add(frame)
        else:
            self._append(False, frame)

    def send_message(self, message: bytes) -> None:
        """Send a message behind what was sent before."""
        size = len(message)
        cost = size + MESSAGE_COST
        outbox = self._outbox
        if size <= _SMALL and cost <= self.credit and not self._queue and outbox.size < _FEW:
            self.credit -= cost
            outbox.add(frames.message_header(self.call, size, size), message)
        else:
            self._unsent += size
            outbox.unsent += size
            self._append(True, message)

    def add_credit(self, size: int) -> None:
        """Take credit in."""
        self.credit += size
        if self._queue and not self._has_turn and self._can_go_on():
            self._has_turn = True
            self._outbox.queue(self)

    async def drained(self) -> None:
        """Wait until a writer may go on; also once nothing will be sent any more."""
        while self.is_full:
            writer = asyncio.get_running_loop().create_future()
            self._writers.append(writer)
            await writer

    def drop(self) -> None:
        """Send nothing of what is left."""
        self._queue = None
        self._outbox.unsent -= self._unsent
        self._unsent = self._sent_of_first = 0
        if self._writers:
            self._let_writers_go_on()

    def emit(self, parts: list[bytes | memoryview]) -> int:
        """Add up to a fragment's worth of frames to `parts`; give their bytes."""
        queue, size = self._queue, 0
        while queue and size < FRAGMENT:
            is_message, content = queue[0]
            if not is_message:
                self.is_unheard_of = False
                parts.append(content)
                size += len(content)
                queue.popleft()
                continue
            begun = self._sent_of_first
            if not self._can_go_on():
                break
            cost = 0 if begun else MESSAGE_COST
            piece = min(len(content) - begun, FRAGMENT - size, self.credit - cost)
            self.credit -= piece + cost
            self._unsent -= piece
            self._outbox.unsent -= piece
            header = (
                frames.more_header(self.call, piece)
                if begun
                else frames.message_header(self.call, len(content), piece)
            )
            whole = piece == len(content)
            parts += (header, content if whole else memoryview(content)[begun : begun + piece])
            size += len(header) + piece
            if begun + piece == len(content):
                self._sent_of_first = 0
                queue.popleft()
            else:
                self._sent_of_first = begun + piece
        if self._writers and not self.is_full:
            self._let_writers_go_on()
        if not queue and self.on_empty is not None:
            self.on_empty()
        return size

    def keeps_turn(self) -> bool:
        """Tell, after `emit`, whether the call wants another turn."""
        self._has_turn = bool(self._queue) and self._can_go_on()
        return self._has_turn

    def _can_go_on(self) -> bool:
        """Tell whether there is credit for the next thing in the queue."""
        assert self._queue
        is_message, content = self._queue[0]
        if not is_message:
            return True
        if self._sent_of_first:
            return self.credit > 0
        # A message's beginning has at least one byte of it, for a size alone begins nothing.
        return self.credit >= MESSAGE_COST + min(len(content), 1)

    def _append(self, is_message: bool, content: bytes) -> None:
        if self._queue is None:
            self._queue = deque()
        self._queue.append((is_message, content))
        if not self._has_turn and self._can_go_on():
            self._has_turn = True
            self._outbox.queue(self)

    def _let_writers_go_on(self) -> None:
        writers, self._writers = self._writers, []
        for writer in writers:
            if not writer.done():
                writer.set_result(None)
