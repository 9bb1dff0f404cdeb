"""Delivery of a response stream to a receiver."""

from collections.abc import Awaitable
from typing import Any, Protocol

import grpc

from services.common.inprocess.calls import UnaryStreamCall
from services.common.inprocess.pipe import Receiver


class ReadableCall(Protocol):
    """The part of a call with a response stream that a plain gRPC channel offers."""

    async def read(self) -> Any:
        """Return the next message, `grpc.aio.EOF` at the end."""

    def cancel(self) -> bool:
        """Cancel the call, unless it has ended."""


def deliver(call: ReadableCall, receiver: Receiver) -> Awaitable[None]:
    """Pass every message of a call to a receiver until the call ends; to be awaited.

    An in-process call passes each message on as the servicer sends it, in the servicer's task. That
    saves a task switch and an event loop iteration per message.

    Raises:
        grpc.aio.AioRpcError: the call failed.
        asyncio.CancelledError: the call was cancelled by this side.
        Exception: raised by the receiver.
    """
    if isinstance(call, UnaryStreamCall):
        return call.deliver(receiver)
    return _read_all(call, receiver)


async def _read_all(call: ReadableCall, receiver: Receiver) -> None:
    try:
        while (message := await call.read()) is not grpc.aio.EOF:
            if receiver.receive(message):
                await receiver.drain()
    finally:
        call.cancel()
