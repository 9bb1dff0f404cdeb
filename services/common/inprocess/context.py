"""The servicer's context of an in-process call."""

from collections.abc import AsyncGenerator, Callable
from typing import Any, NamedTuple, NoReturn, Self

import grpc

from services.common.inprocess.exchange import Exchange, Metadata

# A `grpc.RpcMethodHandler`; its attributes are missing in the published types.
Handler = Any

PEER = "inprocess"


class OverError(grpc.aio.UsageError):
    """Error raised in a servicer that continues after its call has ended."""


class Entry(NamedTuple):
    """One entry of metadata."""

    key: str
    value: str | bytes


class CallContext(grpc.aio.ServicerContext[Any, Any]):
    """The context of a call, and the iterator of its request stream.

    Attributes:
        handler: the call's handler, once found.
        aborted: the error that `abort` raised, or None.
    """

    handler: Handler = None
    aborted: grpc.aio.AbortError | None = None
    _code: grpc.StatusCode | None = None
    _text = ""
    _trailing: Metadata = ()
    _callbacks: list[Callable[[Any], None]] | None = None

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def read(self) -> Any:
        """Return the next request, `grpc.aio.EOF` at the end."""
        exchange = self._exchange
        if exchange.is_over:
            self.raise_over()
        requests = exchange.requests
        if requests is None:
            return self.take_request()
        if not requests.messages:
            await requests.wait()
            if not requests.messages:
                if exchange.is_over:
                    self.raise_over()
                return grpc.aio.EOF
        return self._deserialized(requests.take())

    def take_request(self) -> Any:
        """Return the request of a call with one request, `grpc.aio.EOF` on later calls."""
        exchange = self._exchange
        message, exchange.request = exchange.request, None
        return grpc.aio.EOF if message is None else self._deserialized(message)

    def _deserialized(self, message: Any) -> Any:
        # Serialized requests are bytes; others are message objects.
        if isinstance(message, bytes) and (parse := self.handler.request_deserializer):
            return parse(message)
        return message

    async def write(self, message: Any) -> None:
        """Send a response; wait while the pipe is full."""
        if self.send(message):
            await self.drained()

    def send(self, message: Any) -> bool:
        """Send a response at once; return whether the servicer should wait (`drained`)."""
        exchange = self._exchange
        if exchange.is_over:
            self.raise_over()
        is_full = exchange.send_response(message)
        responses = exchange.responses
        if responses is not None and responses.failure is not None:
            self.raise_over()
        return is_full

    async def write_all(self, responses: AsyncGenerator[Any, Callable[[Any], bool]]) -> None:
        """Send the responses that a servicer yields.

        Each `yield` of the generator returns `send`. The generator may call `send` with further
        responses, and yields None to wait when the pipe is full.
        """
        try:
            response = await anext(responses)
            while True:
                if response is None or self.send(response):
                    await self.drained()
                response = await responses.asend(self.send)
        except StopAsyncIteration:
            return

    async def drained(self) -> None:
        """Wait until the servicer may send further responses."""
        responses = self._exchange.responses
        if responses is not None:
            await responses.drained()
            if responses.failure is not None:
                self.raise_over()

    async def send_initial_metadata(self, initial_metadata: Any) -> None:
        """Send initial metadata, before any response."""
        if self._exchange.is_over:
            self.raise_over()
        if self._exchange.initial is not None:
            raise grpc.aio.UsageError("Send initial metadata failed: already sent")
        self._exchange.begin(tuple(initial_metadata))

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Any = ()
    ) -> NoReturn:
        """End the call with a status other than OK; never returns."""
        if self.aborted is not None:
            raise grpc.aio.UsageError("Abort already called!")
        self.aborted = grpc.aio.AbortError("Locally aborted.")
        if not self._exchange.is_over:
            self._code, self._text = code, details or self._text
            self._trailing = tuple(trailing_metadata) or self._trailing
            self._exchange.answer(code, self._text, self._trailing)
        raise self.aborted

    async def abort_with_status(self, status: Any) -> NoReturn:
        """End the call with a status other than OK; never returns."""
        await self.abort(status.code, status.details, status.trailing_metadata)

    def set_trailing_metadata(self, trailing_metadata: Any) -> None:
        """Set the trailing metadata."""
        self._trailing = tuple(trailing_metadata)

    def trailing_metadata(self) -> Any:
        """Return the trailing metadata."""
        return self._trailing

    def invocation_metadata(self) -> Any:
        """Return the metadata of the call."""
        return tuple(Entry(key, value) for key, value in self._exchange.invocation_metadata)

    def set_code(self, code: grpc.StatusCode) -> None:
        """Set the status code."""
        self._code = code

    def code(self) -> Any:
        """Return the status code that was set."""
        return self._code

    def set_details(self, details: str) -> None:
        """Set the status text."""
        self._text = details

    def details(self) -> str:
        """Return the status text that was set."""
        return self._text

    def set_compression(self, compression: grpc.Compression) -> None:
        """Do nothing: nothing is serialized."""

    def disable_next_message_compression(self) -> None:
        """Do nothing: nothing is serialized."""

    def peer(self) -> str:
        """Return a constant: the caller is in this process."""
        return PEER

    def peer_identities(self) -> Any:
        """Return None: in-process calls are not authenticated."""
        return None

    def peer_identity_key(self) -> Any:
        """Return None: in-process calls are not authenticated."""
        return None

    def auth_context(self) -> Any:
        """Return an empty mapping: in-process calls are not authenticated."""
        return {}

    def time_remaining(self) -> Any:
        """Return the seconds until the deadline, or None."""
        return self._exchange.time_remaining()

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Register a callback that is called with the context when the servicer has finished."""
        self._callbacks = [*(self._callbacks or ()), callback]

    def cancelled(self) -> bool:
        """Return whether the caller has cancelled, or the status is CANCELLED."""
        has_left = self._exchange.code is not None and not self._exchange.is_answered
        return has_left or self._code is grpc.StatusCode.CANCELLED

    def done(self) -> bool:
        """Return whether the call has ended."""
        return self._exchange.is_over

    # Servicers read the request stream by iterating over the context.

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        message = await self.read()
        if message is grpc.aio.EOF:
            raise StopAsyncIteration
        return message

    def raise_over(self) -> NoReturn:
        """Raise an error in a servicer that continues after the call has ended."""
        if self.aborted is not None:
            raise self.aborted
        raise OverError("RPC already finished.")
