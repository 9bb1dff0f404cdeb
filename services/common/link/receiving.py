"""How an end of a link receives: messages put together, and credit given for them.

Credit comes back when a message is taken. The bytes of a message that is still coming
count as taken while somebody waits for it, else one larger than the window would never
be whole.
"""

import asyncio
from collections import deque

import grpc

from services.common.link import frames
from services.common.link.frames import MESSAGE_COST, WINDOW, FrameError
from services.common.link.sending import Outbox

# Credit is worth a frame when it has grown to this.
_WORTH_A_FRAME = WINDOW // 2


class Holdings:
    """What one end of a link holds for calls that have not taken it yet.

    A message larger than the window is put together only once there is room for all of
    it, in the order in which they began; so large ones may wait for one another, and
    small ones never wait.
    """

    def __init__(self, *, room: int) -> None:
        """Begin with nothing; large messages may have `room` bytes together, or be one."""
        self._room = room
        # Bytes of room that inboxes were given, each for one or several messages.
        self._given: dict[Inbox, int] = {}
        self._taken = 0
        self._asking: deque[tuple[Inbox, int]] = deque()
        self.unread = 0

    def ask(self, inbox: "Inbox", size: int) -> None:
        """Ask for room for a message; `inbox.allow` is called when it is given."""
        self._asking.append((inbox, size))
        self._give()

    def give_back(self, inbox: "Inbox", size: int) -> None:
        """Give back room that was given for a message of that size."""
        left = self._given.pop(inbox) - size
        if left:
            self._given[inbox] = left
        self._taken -= size
        self._give()

    def forget(self, inbox: "Inbox") -> None:
        """Give back all room that an inbox was given or asks for."""
        if inbox in self._given or self._asking:
            self._taken -= self._given.pop(inbox, 0)
            self._asking = deque(asked for asked in self._asking if asked[0] is not inbox)
            self._give()

    def _give(self) -> None:
        while self._asking:
            inbox, size = self._asking[0]
            if self._taken and self._taken + size > self._room:
                break
            self._asking.popleft()
            self._given[inbox] = self._given.get(inbox, 0) + size
            self._taken += size
            inbox.allow()


class Inbox:
    """What came for one end of one call."""

    __slots__ = (
        "_allowed",
        "_call",
        "_coming",
        "_holdings",
        "_is_wanted",
        "_messages",
        "_missing",
        "_outbox",
        "_owed",
        "_owed_of_coming",
        "_reader",
        "_takes_one",
        "_unread",
        "_window",
        "is_ended",
    )

    def __init__(
        self,
        outbox: Outbox,
        call: int,
        holdings: Holdings | None = None,
        *,
        is_wanted: bool = False,
        takes_one: bool = False,
    ) -> None:
        """Begin with nothing.

        Args:
            outbox: where credit goes out.
            call: the call's number.
            holdings: what the link holds; None where the other end is trusted.
            is_wanted: whether every message counts as waited for.
            takes_one: whether the first message is the last.
        """
        self._outbox = outbox
        self._call = call
        self._holdings = holdings
        self._is_wanted = is_wanted
        self._takes_one = takes_one
        # Messages, each with the credit to be given when it is taken.
        self._messages: deque[tuple[bytes, int]] = deque()
        self._coming: list[bytes] | None = None
        self._missing = 0
        self._owed = self._owed_of_coming = 0
        self._unread = 0
        self._allowed = True
        self._window = WINDOW
        self._reader: asyncio.Future[None] | None = None
        self.is_ended = False

    @property
    def is_empty(self) -> bool:
        """Whether no whole message is there."""
        return not self._messages

    def begin(self, size: int, piece: bytes) -> None:
        """Take the beginning of a message in.

        Raises:
            FrameError: it may not come now, or so much of it.
        """
        if self._coming is not None or self.is_ended:
            raise FrameError("a message where none may begin")
        got = len(piece)
        cost = got + MESSAGE_COST
        self._count(cost)
        if got == size:
            self._put(piece, cost)
        elif not 0 < got < size:
            raise FrameError("a message of another size than it said")
        else:
            self._coming, self._missing = [piece], size - got
            self._owed_of_coming = cost
            if self._holdings is not None and size + MESSAGE_COST > WINDOW:
                self._allowed = False
                self._holdings.ask(self, size)
            self._credit_early()

    def go_on(self, piece: bytes) -> None:
        """Take more of a message in.

        Raises:
            FrameError: none has begun, or it has not so much left.
        """
        got = len(piece)
        if self._coming is None or not 0 < got <= self._missing:
            raise FrameError("bytes that belong to no message")
        self._count(got)
        self._coming.append(piece)
        self._missing -= got
        self._owed_of_coming += got
        if self._missing:
            self._credit_early()
        else:
            message, self._coming = b"".join(self._coming), None
            self._put(message, self._owed_of_coming)
            self._owed_of_coming = 0

    def end(self, *, cuts: bool = False) -> None:
        """Note that no message follows.

        Args:
            cuts: whether one that is not whole yet is forgotten.

        Raises:
            FrameError: one is not whole.
        """
        if self._coming is not None and not cuts:
            raise FrameError("the end before a message is whole")
        self._coming = None
        self.is_ended = True
        self._wake()

    def take(self) -> bytes:
        """Give the first message that is there."""
        message, owed = self._messages.popleft()
        if self._holdings is not None:
            cost = len(message) + MESSAGE_COST
            self._holdings.unread -= cost
            self._unread -= cost
            if cost > WINDOW:
                self._holdings.give_back(self, len(message))
        if not self.is_ended:
            self._owe(owed)
        return message

    async def wait(self) -> None:
        """Wait until a message is there, or none will come; one waits at a time."""
        while not self._messages and not self.is_ended:
            if self._reader is not None:
                raise grpc.aio.UsageError("a call is read once at a time")
            self._reader = asyncio.get_running_loop().create_future()
            try:
                self._credit_early()
                await self._reader
            finally:
                self._reader = None

    def allow(self) -> None:
        """Let a large message come whole."""
        self._allowed = True
        self._credit_early()

    def drop(self) -> None:
        """Forget everything; nothing more comes."""
        self.is_ended = True
        self._messages.clear()
        self._coming = None
        if self._holdings is not None:
            self._holdings.unread -= self._unread
            self._unread = 0
            self._holdings.forget(self)
        self._wake()

    def _put(self, message: bytes, owed: int) -> None:
        self._messages.append((message, owed))
        self.is_ended = self._takes_one
        self._wake()

    def _count(self, cost: int) -> None:
        self._window -= cost
        if self._window < 0:
            raise FrameError("more than there was credit for")
        if self._holdings is not None:
            self._holdings.unread += cost
            self._unread += cost

    def _credit_early(self) -> None:
        if self._owed_of_coming and self._allowed and (self._is_wanted or self._reader):
            owed, self._owed_of_coming = self._owed_of_coming, 0
            self._owe(owed)

    def _owe(self, size: int) -> None:
        self._owed += size
        if self._owed >= _WORTH_A_FRAME:
            self._outbox.add(frames.credit(self._call, self._owed))
            self._window += self._owed
            self._owed = 0

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
