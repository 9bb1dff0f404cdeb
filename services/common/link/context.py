"""What a servicer is given of a call that came over a link."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, Self

import grpc

from services.common.link import frames
from services.common.link.frames import Metadata
from services.common.link.receiving import Inbox
from services.common.link.sending import Outgoing

# A `grpc.RpcMethodHandler`: its attributes are not in the published types.
Handler = Any


class OverError(grpc.aio.UsageError):
    """A servicer went on although its call is over."""


@dataclass(frozen=True, slots=True)
class CallDetails(grpc.HandlerCallDetails):
    """What an interceptor is told of a call."""

    method: str
    invocation_metadata: Metadata


class Session(Protocol):
    """What a call needs of the link it came over.

    Attributes:
        stream: the servicer context of the link itself.
    """

    stream: Any

    def forget(self, number: int) -> None:
        """Drop a call that is over."""
        ...


class CallContext(grpc.aio.ServicerContext[Any, Any]):
    """The context of a call; also its requests, as an iterator, where they are a stream.

    Attributes:
        handler: what serves the call, once it is found.
        inbox: what the caller sent.
        outgoing: what is sent to the caller.
        is_over: whether its status is on its way, or the caller has left.
        has_left: whether the caller has left.
        aborted: what the servicer aborted with.
    """

    def __init__(
        self,
        session: Session,
        number: int,
        details: CallDetails,
        deadline_ms: int | None,
        inbox: Inbox,
        outgoing: Outgoing,
        max_message: int,
    ) -> None:
        self._session = session
        self._number = number
        self._details = details
        self._max_message = max_message
        self._headers_sent = False
        self._code: grpc.StatusCode | None = None
        self._text = ""
        self._trailing: Metadata = ()
        self._callbacks: list[Callable[[Any], None]] = []
        self._deadline: float | None = None
        if deadline_ms is not None:
            self._deadline = asyncio.get_running_loop().time() + deadline_ms / 1000
        self.handler: Handler = None
        self.inbox = inbox
        self.outgoing = outgoing
        self.is_over = False
        self.has_left = False
        self.aborted: grpc.aio.AbortError | None = None

    async def read(self) -> Any:
        """Give the next request, `grpc.aio.EOF` after the last."""
        self.raise_if_over()
        if self.inbox.is_empty:
            await self.inbox.wait()
            if self.inbox.is_empty:
                self.raise_if_over()
                return grpc.aio.EOF
        message = self.inbox.take()
        deserialize = self.handler.request_deserializer
        return deserialize(message) if deserialize else message

    async def write(self, message: Any) -> None:
        """Send a response; wait while the caller takes none."""
        self.raise_if_over()
        self.send_response(message)
        if self.outgoing.is_full:
            await self.outgoing.drained()

    async def send_initial_metadata(self, initial_metadata: Any) -> None:
        """Send initial metadata, before any response."""
        self.raise_if_over()
        if self._headers_sent:
            raise grpc.aio.UsageError("Send initial metadata failed: already sent")
        self._headers_sent = True
        packed = frames.pack_metadata(initial_metadata)
        self.outgoing.send_frame(frames.headers(self._number, packed))

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Any = ()
    ) -> NoReturn:
        """End the call with a status other than OK; never returns."""
        if self.aborted is not None:
            raise grpc.aio.UsageError("Abort already called!")
        self.aborted = grpc.aio.AbortError("Locally aborted.")
        if not self.is_over:
            self._code, self._text = code, details or self._text
            self._trailing = tuple(trailing_metadata) or self._trailing
            self.send_status(code, self._text, self._trailing)
        raise self.aborted

    async def abort_with_status(self, status: Any) -> NoReturn:
        """End the call with a status other than OK; never returns."""
        await self.abort(status.code, status.details, status.trailing_metadata)

    def set_trailing_metadata(self, trailing_metadata: Any) -> None:
        """Set what goes with the status."""
        self._trailing = tuple(trailing_metadata)

    def trailing_metadata(self) -> Any:
        """Give what goes with the status."""
        return self._trailing

    def invocation_metadata(self) -> Any:
        """Give what came with the call."""
        return self._details.invocation_metadata

    def set_code(self, code: grpc.StatusCode) -> None:
        """Set the status code."""
        self._code = code

    def code(self) -> Any:
        """Give the status code that was set."""
        return self._code

    def set_details(self, details: str) -> None:
        """Set the status text."""
        self._text = details

    def details(self) -> str:
        """Give the status text that was set."""
        return self._text

    def set_compression(self, compression: grpc.Compression) -> None:
        """Do nothing: a link is not compressed."""

    def disable_next_message_compression(self) -> None:
        """Do nothing: a link is not compressed."""

    def peer(self) -> str:
        """Give the address of the link's other end."""
        return str(self._session.stream.peer())

    def peer_identities(self) -> Any:
        """Give who the link's other end is, or None."""
        return self._session.stream.peer_identities()

    def peer_identity_key(self) -> Any:
        """Give which property identifies the link's other end, or None."""
        return self._session.stream.peer_identity_key()

    def auth_context(self) -> Any:
        """Give what the link's other end has proved."""
        return self._session.stream.auth_context()

    def time_remaining(self) -> Any:
        """Give the seconds until the deadline, or None."""
        if self._deadline is None:
            return None
        return max(self._deadline - asyncio.get_running_loop().time(), 0.0)

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call back with the context when nothing serves the call any more."""
        self._callbacks.append(callback)

    def cancelled(self) -> bool:
        """Tell whether the caller has left, or the status is CANCELLED."""
        return self.has_left or self._code is grpc.StatusCode.CANCELLED

    def done(self) -> bool:
        """Tell whether the call is over."""
        return self.is_over

    # Requests as an iterator, which is what servicers of streams are given.

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        message = await self.read()
        if message is grpc.aio.EOF:
            raise StopAsyncIteration
        return message

    def send_response(self, response: Any) -> None:
        """Send a response; one that is too large ends the call."""
        serialize = self.handler.response_serializer
        message = serialize(response) if serialize else response
        if len(message) > self._max_message:
            size = f"({len(message)} vs. {self._max_message})"
            self.send_status(
                grpc.StatusCode.RESOURCE_EXHAUSTED, f"Sent message larger than max {size}", ()
            )
        else:
            self._headers_sent = True
            self.outgoing.send_message(message)

    def send_status(self, code: grpc.StatusCode, text: str, trailing: Metadata) -> None:
        """End the call with a status."""
        self.is_over = True
        try:
            packed = frames.pack_metadata(trailing)
        except frames.MetadataTooLargeError:
            code, packed = grpc.StatusCode.RESOURCE_EXHAUSTED, b""
            text = f"trailing metadata has more than {frames.MAX_METADATA} bytes"
        text = text[: frames.MAX_METADATA]
        self.outgoing.send_frame(frames.status(self._number, code.value[0], text, packed))

    def raise_if_over(self) -> None:
        """Stop a servicer that goes on although the call is over."""
        if self.aborted is not None:
            raise self.aborted
        if self.is_over:
            raise OverError("RPC already finished.")
