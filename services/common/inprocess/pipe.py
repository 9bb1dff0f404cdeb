"""A bounded queue of messages between the two sides of a call."""

import asyncio
from collections import deque
from typing import Any, Protocol

# High-water mark in bytes, and the constant cost of a message, so that empty messages count.
WINDOW = 256 << 10
MESSAGE_COST = 64


class ChangeNotifier:
    """A condition whose changes can be awaited.

    Attributes:
        loop: the event loop.
    """

    loop: asyncio.AbstractEventLoop
    _waiters: list[asyncio.Future[None]] | None = None

    def wait_for_change(self) -> asyncio.Future[None]:
        """Return a future that completes at the next `notify_all`."""
        waiter = self.loop.create_future()
        if self._waiters is None:
            self._waiters = [waiter]
        else:
            self._waiters.append(waiter)
        return waiter

    def notify_all(self) -> None:
        """Wake all waiting tasks."""
        if self._waiters is not None:
            waiters, self._waiters = self._waiters, None
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)


class Receiver(Protocol):
    """Receives messages as they are written."""

    def receive(self, message: Any) -> bool:
        """Receive a message; return whether the writer should wait (`drain`)."""
        ...

    async def drain(self) -> None:
        """Wait until the writer may continue."""


class Pipe(ChangeNotifier):
    """A bounded stream of messages.

    Attributes:
        messages: unread messages; read-only.
        is_ended: whether the stream is closed.
        receiver: receives messages at once, in place of the queue; None if there is none.
        failure: exception of the receiver, which closed the stream.
    """

    receiver: Receiver | None = None
    failure: Exception | None = None

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.messages: deque[Any] = deque()
        self._sizes: deque[int] = deque()
        self._held = 0
        self.is_ended = False

    def put(self, message: Any, size: int) -> bool:
        """Add a message of `size` bytes, unless the pipe is closed.

        Return whether the writer should wait (`drained`).
        """
        if self.is_ended:
            return False
        if self.receiver is not None:
            try:
                return self.receiver.receive(message)
            except Exception as error:
                # The reader of the stream raises it; the writer must not see it.
                self._fail(error)
                return False
        size += MESSAGE_COST
        self.messages.append(message)
        self._sizes.append(size)
        self._held += size
        if self._waiters is not None:
            self.notify_all()
        return self._held > WINDOW

    def take(self) -> Any:
        """Remove and return the first message, which must exist."""
        self._held -= self._sizes.popleft()
        if self._waiters is not None:
            self.notify_all()
        return self.messages.popleft()

    async def wait(self) -> None:
        """Wait until a message is available or the pipe is closed."""
        while not (self.messages or self.is_ended):
            await self.wait_for_change()

    async def drained(self) -> None:
        """Wait until the writer may continue."""
        if self.receiver is not None:
            try:
                await self.receiver.drain()
            except Exception as error:
                self._fail(error)
            return
        while self._held > WINDOW and not self.is_ended:
            await self.wait_for_change()

    def end(self) -> None:
        """Close the pipe; unread messages stay."""
        self.is_ended = True
        if self._waiters is not None:
            self.notify_all()

    def _fail(self, error: Exception) -> None:
        self.failure = error
        self.end()

    def drop(self) -> None:
        """Close the pipe and discard its messages."""
        self.messages.clear()
        self._sizes.clear()
        self._held = 0
        self.end()
