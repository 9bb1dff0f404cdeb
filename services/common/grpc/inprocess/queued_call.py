"""Calls with a request stream, served in a task of their own behind two bounded queues."""

import asyncio
import logging
import weakref
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import grpc

from services.common.grpc.inprocess.call import InProcessCall, InProcessServer
from services.common.grpc.inprocess.context import MessageQueue, Metadata, status_error

log = logging.getLogger(__name__)


class QueuedCall:
    """A call with a request stream, like a `grpc.aio.StreamStreamCall` or a `StreamUnaryCall`.

    A call that is abandoned is cancelled.
    """

    def __init__(
        self,
        server: InProcessServer,
        method: str,
        *,
        metadata: Metadata = (),
        timeout: float | None = None,
    ) -> None:
        """Begin a call."""
        limit = server.max_message_bytes
        self._call = call = InProcessCall(server, method, metadata)
        self._requests = call.requests = MessageQueue(limit)
        self._responses = call.receiver = MessageQueue(limit)
        self._callbacks: list[Callable[[Any], object]] = []
        try:
            call.begin(None, timeout)
        except grpc.aio.AioRpcError as error:
            call.fail(error.code(), error.details() or "")
            self._close()
        else:
            call.spawn().add_done_callback(partial(_on_served, call, weakref.ref(self)))

    def __del__(self) -> None:
        self._call.interrupt(asyncio.CancelledError)

    def __await__(self) -> Generator[Any, None, Any]:
        return self._whole().__await__()

    async def write(self, request: Any) -> None:
        """Send a message; wait while the queue is full.

        Raises:
            asyncio.InvalidStateError: the call has ended, or its request stream.
            grpc.aio.AioRpcError: the call failed meanwhile.
        """
        if self.done():
            raise asyncio.InvalidStateError("RPC already finished.")
        if self._requests.is_closed:
            raise asyncio.InvalidStateError('RPC is half closed after calling "done_writing".')
        try:
            is_full = self._requests.receive(request)
        except grpc.aio.AioRpcError as error:
            self._interrupt(partial(status_error, error.code(), error.details() or ""))
            raise
        if is_full:
            await self._cancelling(self._requests.drain())
            self._raise_failure()

    async def done_writing(self) -> None:
        """Close the request stream; repeated calls have no effect."""
        self._requests.close()

    async def read(self) -> Any:
        """Return the next response, `grpc.aio.EOF` at the end.

        Raises:
            grpc.aio.AioRpcError: the call failed.
            asyncio.CancelledError: the call was cancelled by this side.
        """
        message = await self._cancelling(self._responses.take())
        if message is grpc.aio.EOF:
            self._raise_failure()
        return message

    def cancel(self) -> bool:
        """Cancel the call; return False if it has already ended."""
        if self.done():
            return False
        self._interrupt(asyncio.CancelledError)
        return True

    def cancelled(self) -> bool:
        """Return whether the call was cancelled."""
        return self._failed_code() is grpc.StatusCode.CANCELLED

    def done(self) -> bool:
        """Return whether the call has ended; unread responses may remain."""
        return self._responses.is_closed

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """Register a callback that is called with the call when it ends."""
        if self.done():
            callback(self)
        else:
            self._callbacks.append(callback)

    async def initial_metadata(self) -> grpc.aio.Metadata:
        """Return no metadata: it is not passed on."""
        return grpc.aio.Metadata()

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        """Return the trailing metadata of a failed call."""
        await self._responses.closed()
        error = self._call.failure and self._call.failure()
        if isinstance(error, grpc.aio.AioRpcError):
            return error.trailing_metadata() or grpc.aio.Metadata()
        return grpc.aio.Metadata()

    async def code(self) -> grpc.StatusCode:
        """Return the status code."""
        await self._responses.closed()
        return self._failed_code() or grpc.StatusCode.OK

    async def details(self) -> str:
        """Return the status message."""
        await self._responses.closed()
        error = self._call.failure and self._call.failure()
        if isinstance(error, grpc.aio.AioRpcError):
            return error.details() or ""
        return "" if error is None else "Locally cancelled by application!"

    async def _whole(self) -> Any:
        """Return the response of a call that has one."""
        await self._cancelling(self._responses.closed())
        self._raise_failure()
        return self._call.response

    async def _cancelling(self, waiting: Any) -> Any:
        """Await something; a caller that is cancelled meanwhile cancels the call."""
        try:
            return await waiting
        except asyncio.CancelledError:
            self.cancel()
            raise

    def _interrupt(self, make_failure: Callable[[], BaseException]) -> None:
        self._call.interrupt(make_failure)
        self._responses.drop()
        self._close()

    def on_served(self, task: asyncio.Task[Any]) -> None:
        """End the call, whose servicer has finished."""
        if self.done():
            return
        if task.cancelled() and self._call.failure is None:
            self._call.failure = asyncio.CancelledError
        self._close()

    def _close(self) -> None:
        self._requests.drop()
        self._responses.close()
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            try:
                callback(self)
            except Exception:
                log.exception("a callback of a call failed")

    def _raise_failure(self) -> None:
        if self._call.failure is not None and self.done():
            raise self._call.failure()

    def _failed_code(self) -> grpc.StatusCode | None:
        if self._call.failure is None or not self.done():
            return None
        error = self._call.failure()
        if isinstance(error, grpc.aio.AioRpcError):
            return error.code()
        return grpc.StatusCode.CANCELLED


def _on_served(
    call: InProcessCall, caller: "weakref.ref[QueuedCall]", task: asyncio.Task[Any]
) -> None:
    """End a call; its caller may have abandoned it."""
    call.end()
    if (queued := caller()) is not None:
        queued.on_served(task)
