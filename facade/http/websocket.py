"""The server's side of a WebSocket (RFC 6455), without extensions.

The size of a frame is known before its payload arrives, so that a message is charged to its user
before it is held: aiohttp's reader, which could be used instead, collects messages uncharged.
"""

import asyncio
import math
from collections.abc import Callable
from typing import Final, NamedTuple

from aiohttp.streams import StreamReader

from facade.http.exchange import ClientConnection, body_too_large
from facade.http.websocket_frames import (
    CloseCode,
    FrameError,
    FrameHead,
    Opcode,
    close_payload,
    frame,
    read_head,
    unmasked,
)
from services.common.errors import GatewayError
from services.common.process.byte_budget import Charge
from services.common.settings import Limits

# Messages of up to this size are not charged, as most are small.
_SMALL: Final = 64 << 10
# Seconds that the client has to answer the end of a connection.
_CLOSE_S: Final = 2.0


class SocketClosedError(Exception):
    """Error raised once a socket is closed: by the client, or because of what the client sent."""


class SocketMessage(NamedTuple):
    """A message of a client.

    Attributes:
        data: its bytes.
        charge: the bytes reserved for it, which the receiver has to release.
    """

    data: bytes
    charge: Charge


class WebSocket:
    """An open socket.

    Args:
        connection: the connection, on which nothing else is written.
        content: what the client sends.
        limits: limits on messages.
        new_charge: returns a charge of the user's share of buffered bytes.

    Attributes:
        connection: see the argument.
        is_stopping: whether the gateway stops.
    """

    def __init__(
        self,
        connection: ClientConnection,
        content: StreamReader,
        limits: Limits,
        new_charge: Callable[[], Charge],
    ) -> None:
        self.connection = connection
        self.is_stopping = False
        self._content = content
        self._limits = limits
        self._new_charge = new_charge
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._waiting: asyncio.Timeout | None = None  # of a read between messages
        self._is_woken = False
        self._is_closed = False  # whether the end of the socket has been sent
        self._draining: asyncio.Task[None] | None = None

    def send(self, text: bytes) -> None:
        """Send a text message.

        Raises:
            ConnectionError: the client has left.
        """
        self.connection.write(frame(Opcode.TEXT, text))

    async def drain(self) -> None:
        """Wait while the client does not read; several tasks may wait.

        Raises:
            ConnectionError: the client has left.
        """
        if self._draining is None or self._draining.done():
            self._draining = self._loop.create_task(self.connection.drain())
        # One task of several may be cancelled, which must not end the waiting of the others.
        await asyncio.shield(self._draining)

    def stop(self) -> None:
        """Note that the gateway stops, and wake the receiver."""
        self.is_stopping = True
        self.wake()

    def wake(self) -> None:
        """Wake `receive`, which then returns None unless a message is arriving."""
        self._is_woken = True
        if self._waiting is not None:
            self._waiting.reschedule(self._loop.time())

    async def receive(self, until: float) -> SocketMessage | None:
        """Return the next message; None once woken, or at `until`, a time of the loop's clock.

        Pings are answered, and sent while nothing arrives, so that proxies keep the connection.

        Raises:
            SocketClosedError: the socket is closed.
            GatewayError: too_large, or there is no room for the message; the rest of it is not
                read, so that the socket has to be closed.
        """
        charge = self._new_charge()
        try:
            data = await self._message(charge, until)
        except BaseException as error:
            charge.release()
            if not isinstance(error, FrameError):
                raise
            self._write_close(CloseCode.PROTOCOL_ERROR, str(error))
            raise SocketClosedError(str(error)) from None
        return None if data is None else SocketMessage(data, charge)

    async def close(self, code: CloseCode, reason: str) -> None:
        """Close the socket, and wait a moment for the client's answer."""
        try:
            self._write_close(code, reason)
            async with asyncio.timeout(_CLOSE_S):
                while True:
                    late = await self.receive(math.inf)
                    if late is not None:
                        late.charge.release()
        except (TimeoutError, SocketClosedError, GatewayError):
            pass  # the client has answered, or does not

    async def _message(self, charge: Charge, until: float) -> bytes | None:
        """Return the payload of the next message; None as `receive`."""
        data = bytearray()
        is_begun = False
        began = self._loop.time()
        while True:
            while (head := read_head(self._buffer)) is None:
                if is_begun or self._buffer:
                    await self._fill(began, len(data))
                elif not await self._wait(until):
                    return None
                else:
                    began = self._loop.time()
            del self._buffer[: head.head_size]
            if head.opcode >= Opcode.CLOSE:
                await self._control(head)
                continue
            if (head.opcode is Opcode.CONTINUATION) is not is_begun:
                raise FrameError("a continuation without a beginning, or a beginning within one")
            size = len(data) + head.size
            if size > self._limits.max_body_bytes:
                raise body_too_large(self._limits.max_body_bytes, "limits.max_body_bytes")
            if size > _SMALL:
                charge.reserve(size - charge.size)
            await self._read_payload(head, data, began)
            is_begun = True
            if head.is_final:
                return bytes(data)

    async def _control(self, head: FrameHead) -> None:
        """Answer a control frame."""
        payload = bytearray()
        await self._read_payload(head, payload, self._loop.time())
        if head.opcode is Opcode.CLOSE:
            self._write_close(int.from_bytes(payload[:2]) if payload else CloseCode.NORMAL)
            raise SocketClosedError("the client has closed the socket")
        if head.opcode is Opcode.PING:
            self._write(Opcode.PONG, bytes(payload))
            if self.connection.writing_paused:
                await self.drain()

    async def _read_payload(self, head: FrameHead, data: bytearray, began: float) -> None:
        """Read the payload of a frame to the end of `data`."""
        read = 0
        while read < head.size:
            if not self._buffer:
                await self._fill(began, len(data))
            piece = bytes(self._buffer[: head.size - read])
            del self._buffer[: len(piece)]
            data += unmasked(piece, head.mask, read)
            read += len(piece)

    async def _wait(self, until: float) -> bool:
        """Wait for the beginning of a message; return False once woken, or at a time."""
        while True:
            now = self._loop.time()
            if self._is_woken or now >= until:
                self._is_woken = False
                return False
            try:
                async with asyncio.timeout_at(
                    min(until, now + self._limits.keepalive_s)
                ) as self._waiting:
                    await self._read()
                return True
            except TimeoutError:
                if not self._is_woken and not self.connection.writing_paused:
                    self._write(Opcode.PING, b"")
            finally:
                self._waiting = None

    async def _fill(self, began: float, received: int) -> None:
        """Read more of a message.

        Raises:
            SocketClosedError: the client sends nothing, or too slowly.
        """
        limits, now = self._limits, self._loop.time()
        left_s = began + limits.body_idle_s + received / limits.min_body_bytes_per_s - now
        try:
            async with asyncio.timeout(max(0.0, min(limits.body_idle_s, left_s))):
                await self._read()
        except TimeoutError:
            reason = "the message arrives too slowly"
            self._write_close(CloseCode.POLICY_VIOLATION, reason)
            raise SocketClosedError(reason) from None

    async def _read(self) -> None:
        data = await self._content.readany()
        if not data:
            raise SocketClosedError("the client has left")
        self._buffer += data

    def _write_close(self, code: int, reason: str = "") -> None:
        self._write(Opcode.CLOSE, close_payload(code, reason))
        self._is_closed = True

    def _write(self, opcode: Opcode, payload: bytes) -> None:
        """Write a control frame; none follows the end of the socket."""
        if self._is_closed:
            return
        try:
            self.connection.write(frame(opcode, payload))
        except ConnectionError as error:
            raise SocketClosedError("the client has left") from error
