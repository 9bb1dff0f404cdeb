"""The events of a background response, for the client that created it."""

from facade.http.exchange import Exchange
from facade.http.responses import StreamedResponse
from gateway.memory.v1.responses_pb2 import RunInBackgroundResponse
from services.common.grpc.inprocess.response_stream import ReadableCall, deliver
from services.common.process.idle import IdleTimer

_KEEPALIVE = b": keep-alive\n\n"


async def write_events(exchange: Exchange, call: ReadableCall) -> StreamedResponse:
    """Respond with the events of a RunInBackground, and keepalives between them.

    Raises:
        grpc.aio.AioRpcError: the call failed.
        ConnectionError: the client has left.
    """
    writer = _EventWriter(exchange)
    try:
        await deliver(call, writer)
    finally:
        writer.timer.stop()
    response = writer.response
    assert response is not None, "the service has responded `queued`"
    response.write_eof()
    await writer.drain()
    return response


class _EventWriter:
    """Receives the messages of a call, and writes their events.

    Attributes:
        response: the response, which begins with the first message.
        timer: writes keepalives.
    """

    def __init__(self, exchange: Exchange) -> None:
        context = exchange.context
        self._exchange = exchange
        self._connection = exchange.connection
        self.response: StreamedResponse | None = None
        keepalive_s = context.settings.limits.keepalive_s
        self.timer = IdleTimer(context.timers, keepalive_s, self._on_silence)

    def receive(self, message: RunInBackgroundResponse) -> bool:
        """Write events; return whether the client reads too slowly.

        Raises:
            ConnectionError: the client has left.
        """
        if self.response is None:
            self.response = StreamedResponse(self._exchange, {})
        if message.events:
            self.timer.touch()
            self.response.write(message.events)
        return self._connection.writing_paused

    async def drain(self) -> None:
        """Wait while the client does not read.

        Raises:
            ConnectionError: the client has left.
        """
        if self._connection.writing_paused:
            await self._connection.drain()

    def _on_silence(self) -> None:
        if self.response is None or self._connection.writing_paused:
            return
        try:
            self.response.write(_KEEPALIVE)
        except ConnectionError:
            pass  # the task of the request handles it
