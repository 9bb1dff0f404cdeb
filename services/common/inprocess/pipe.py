"""Messages on their way from one side of a call to the other."""

import asyncio
from collections import deque
from typing import Any

# Bytes that wait for a reader until the writer waits too, and what a message costs beside its
# own bytes: many empty ones are not free.
WINDOW = 256 << 10
MESSAGE_COST = 64


class Changing:
    """Something that changes, and those who wait for that."""

    __slots__ = ("_waiters",)

    def __init__(self) -> None:
        self._waiters: list[asyncio.Future[None]] | None = None

    async def changed(self) -> None:
        """Wait until the next `wake`."""
        waiter = asyncio.get_running_loop().create_future()
        if self._waiters is None:
            self._waiters = [waiter]
        else:
            self._waiters.append(waiter)
        await waiter

    def wake(self) -> None:
        """Wake everybody who waits."""
        if self._waiters is not None:
            waiters, self._waiters = self._waiters, None
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)


class Pipe(Changing):
    """A queue of messages, with a bound that its writer waits for.

    Attributes:
        is_ended: whether no message follows those that are there.
    """

    __slots__ = ("_held", "_messages", "is_ended")

    def __init__(self) -> None:
        self._waiters = None
        self._messages: deque[tuple[Any, int]] = deque()
        self._held = 0
        self.is_ended = False

    @property
    def is_empty(self) -> bool:
        """Whether no message is there."""
        return not self._messages

    @property
    def is_full(self) -> bool:
        """Whether its writer should wait."""
        return self._held > WINDOW and not self.is_ended

    def put(self, message: Any, size: int) -> None:
        """Add a message of `size` bytes, unless the pipe has ended."""
        if not self.is_ended:
            size += MESSAGE_COST
            self._messages.append((message, size))
            self._held += size
            self.wake()

    def take(self) -> Any:
        """Return the first message, which has to be there."""
        message, size = self._messages.popleft()
        self._held -= size
        self.wake()
        return message

    async def wait(self) -> None:
        """Wait until a message is there, or none follows."""
        while not (self._messages or self.is_ended):
            await self.changed()

    async def drained(self) -> None:
        """Wait until the pipe is not full, or has ended."""
        while self.is_full:
            await self.changed()

    def end(self) -> None:
        """Take no message after those that are there."""
        self.is_ended = True
        self.wake()

    def drop(self) -> None:
        """End, and forget what is there."""
        self._messages.clear()
        self._held = 0
        self.end()
