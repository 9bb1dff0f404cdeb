"""A bounded queue of messages between the two sides of a call."""

import asyncio
from collections import deque
from typing import Any

import grpc

from services.common.grpc.inprocess.status import size_error

# High-water mark in bytes, and the constant cost of a message, so that empty messages count.
WINDOW = 256 << 10
MESSAGE_COST = 64


class MessageQueue:
    """A bounded stream of messages.

    Args:
        max_message_bytes: maximum size of a message.

    Attributes:
        is_closed: whether no further messages are accepted.
    """

    def __init__(self, max_message_bytes: int) -> None:
        self._max_message_bytes = max_message_bytes
        self._messages: deque[tuple[Any, int]] = deque()
        self._held = 0
        self._waiting: list[asyncio.Future[None]] = []
        self.is_closed = False

    def receive(self, message: Any) -> bool:
        """Add a message, unless the queue is closed; return whether the writer should wait.

        Raises:
            grpc.aio.AioRpcError: the message is too large.
        """
        if self.is_closed:
            return False
        size = message.ByteSize()
        if size > self._max_message_bytes:
            raise size_error(message, self._max_message_bytes)
        size += MESSAGE_COST
        self._messages.append((message, size))
        self._held += size
        self._notify()
        return self._held > WINDOW

    async def drain(self) -> None:
        """Wait until the writer may continue."""
        while self._held > WINDOW and not self.is_closed:
            await self._change()

    async def take(self) -> Any:
        """Remove and return the first message; `grpc.aio.EOF` at the end."""
        while not self._messages:
            if self.is_closed:
                return grpc.aio.EOF
            await self._change()
        message, size = self._messages.popleft()
        self._held -= size
        self._notify()
        return message

    def close(self) -> None:
        """Accept no further messages; those in the queue remain."""
        self.is_closed = True
        self._notify()

    def drop(self) -> None:
        """Close the queue and discard its messages."""
        self._messages.clear()
        self._held = 0
        self.close()

    async def closed(self) -> None:
        """Wait until the queue is closed."""
        while not self.is_closed:
            await self._change()

    def _change(self) -> asyncio.Future[None]:
        """Return a future that completes with the next change."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        return waiter

    def _notify(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)
