"""Messages on their way from one side of a call to the other."""

import asyncio
from collections import deque
from typing import Any

# Bytes that wait for a reader until the writer waits too, and what a message costs beside its
# own bytes: many empty ones are not free.
WINDOW = 256 << 10
MESSAGE_COST = 64


class Changing:
    """Something that changes, and those who wait for that.

    Attributes:
        loop: the event loop of all of them.
    """

    loop: asyncio.AbstractEventLoop
    _waiters: list[asyncio.Future[None]] | None = None

    def changed(self) -> asyncio.Future[None]:
        """Return a future of the next `wake`."""
        waiter = self.loop.create_future()
        if self._waiters is None:
            self._waiters = [waiter]
        else:
            self._waiters.append(waiter)
        return waiter

    def wake(self) -> None:
        """Wake everybody who waits."""
        if self._waiters is not None:
            waiters, self._waiters = self._waiters, None
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)


class Pipe(Changing):
    """The messages of a stream, with a bound that its writer waits for.

    Attributes:
        messages: those that nobody has taken yet; to be read only.
        is_ended: whether no message follows those that are there.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.messages: deque[Any] = deque()
        self._sizes: deque[int] = deque()
        self._held = 0
        self.is_ended = False

    def put(self, message: Any, size: int) -> bool:
        """Add a message of `size` bytes, unless the pipe has ended.

        Return whether its writer should wait (`drained`).
        """
        if self.is_ended:
            return False
        size += MESSAGE_COST
        self.messages.append(message)
        self._sizes.append(size)
        self._held += size
        if self._waiters is not None:
            self.wake()
        return self._held > WINDOW

    def take(self) -> Any:
        """Return the first message, which has to be there."""
        self._held -= self._sizes.popleft()
        if self._waiters is not None:
            self.wake()
        return self.messages.popleft()

    async def wait(self) -> None:
        """Wait until a message is there, or none follows."""
        while not (self.messages or self.is_ended):
            await self.changed()

    async def drained(self) -> None:
        """Wait until the writer need not wait any more."""
        while self._held > WINDOW and not self.is_ended:
            await self.changed()

    def end(self) -> None:
        """Refuse messages after those that are there."""
        self.is_ended = True
        if self._waiters is not None:
            self.wake()

    def drop(self) -> None:
        """End, and forget what is there."""
        self.messages.clear()
        self._sizes.clear()
        self._held = 0
        self.end()
