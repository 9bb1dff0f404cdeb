"""The callers' end of the calls within a process: a replacement for `grpc.aio.Channel`."""

import asyncio
from functools import partial
from types import TracebackType
from typing import Any, Self

import grpc

from services.common.grpc.inprocess.call import InProcessServer, run
from services.common.grpc.inprocess.queued_call import QueuedCall
from services.common.grpc.inprocess.response_stream import ResponseStream


class InProcessChannel(grpc.aio.Channel):
    """A `grpc.aio.Channel` to a server in this process, without its calls' `credentials`.

    A call with one response is a coroutine, which begins when it is awaited, and is cancelled with
    its task.
    """

    def __init__(self, server: InProcessServer) -> None:
        """Create a channel to a server, which may start later."""
        self._server = server

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.close()

    def unary_unary(self, method: str, *_: Any, **__: Any) -> Any:
        """Return a coroutine function that calls a method with one request and one response."""
        return partial(run, self._server, method)

    def unary_stream(self, method: str, *_: Any, **__: Any) -> Any:
        """Return a function that calls a method with one request and a response stream."""
        return partial(ResponseStream, self._server, method)

    def stream_unary(self, method: str, *_: Any, **__: Any) -> Any:
        """Return a function that calls a method with a request stream."""
        return partial(QueuedCall, self._server, method)

    def stream_stream(self, method: str, *_: Any, **__: Any) -> Any:
        """Return a function that calls a method with a request stream and a response stream."""
        return partial(QueuedCall, self._server, method)

    async def close(self, grace: float | None = None) -> None:
        """Do nothing: the server ends its calls when it stops."""

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """Return READY: there is no connection."""
        return grpc.ChannelConnectivity.READY

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Wait until the channel has another state."""
        if last_observed_state is grpc.ChannelConnectivity.READY:
            await asyncio.get_running_loop().create_future()

    async def channel_ready(self) -> None:
        """Return at once."""
