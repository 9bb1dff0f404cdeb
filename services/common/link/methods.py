"""What stubs call: one object a method, as `grpc.aio`'s multi-callables."""

from collections.abc import Sequence
from typing import Any, Protocol

import grpc

from services.common.link import frames
from services.common.link.calls import (
    Deserialize,
    Requests,
    Serialize,
    StreamStreamCall,
    StreamUnaryCall,
    UnaryStreamCall,
    UnaryUnaryCall,
)
from services.common.link.exchange import Exchange

Entries = grpc.aio.Metadata | Sequence[tuple[str, str | bytes]]


class Channel(Protocol):
    """What a method needs of its channel."""

    max_message: int

    def begin(self, exchange: Exchange) -> None:
        """Let a call begin: now, or when there is a link."""
        ...


class _Method:
    """A method of a service, ready to be called."""

    _streams_responses = False

    def __init__(
        self,
        channel: Channel,
        method: str,
        serialize: Serialize | None,
        deserialize: Deserialize | None,
    ) -> None:
        self._channel = channel
        self._method = method.encode()
        self._serialize = serialize
        self._deserialize = deserialize

    def _begin(
        self,
        request: bytes | None,
        timeout: float | None,
        metadata: Entries | None,
        wait_for_ready: bool | None,
        unsupported: object,
    ) -> Exchange:
        if unsupported:
            raise grpc.aio.UsageError("a link takes neither credentials nor compression")
        packed, fits = b"", True
        if metadata:
            try:
                packed = frames.pack_metadata(metadata)
            except frames.MetadataTooLargeError:
                fits = False
        exchange = Exchange(
            self._method,
            packed,
            request,
            streams_responses=self._streams_responses,
            max_message=self._channel.max_message,
            timeout=timeout,
            is_patient=bool(wait_for_ready),
        )
        if fits:
            self._channel.begin(exchange)
        else:
            exchange.lose(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"metadata has more than {frames.MAX_METADATA} bytes",
            )
        return exchange


class _OneRequestMethod(_Method):
    def _call(
        self,
        request: Any,
        timeout: float | None,
        metadata: Entries | None,
        credentials: grpc.CallCredentials | None,
        wait_for_ready: bool | None,
        compression: grpc.Compression | None,
    ) -> Exchange:
        message = self._serialize(request) if self._serialize else request
        return self._begin(message, timeout, metadata, wait_for_ready, credentials or compression)


class UnaryUnaryMethod(_OneRequestMethod, grpc.aio.UnaryUnaryMultiCallable[Any, Any]):
    """Makes calls of one request and one response."""

    def __call__(
        self,
        request: Any,
        *,
        timeout: float | None = None,
        metadata: Entries | None = None,
        credentials: grpc.CallCredentials | None = None,
        wait_for_ready: bool | None = None,
        compression: grpc.Compression | None = None,
    ) -> UnaryUnaryCall:
        """Begin a call."""
        exchange = self._call(request, timeout, metadata, credentials, wait_for_ready, compression)
        return UnaryUnaryCall(exchange, self._deserialize)


class UnaryStreamMethod(_OneRequestMethod, grpc.aio.UnaryStreamMultiCallable[Any, Any]):
    """Makes calls of one request and any number of responses."""

    _streams_responses = True

    def __call__(
        self,
        request: Any,
        *,
        timeout: float | None = None,
        metadata: Entries | None = None,
        credentials: grpc.CallCredentials | None = None,
        wait_for_ready: bool | None = None,
        compression: grpc.Compression | None = None,
    ) -> UnaryStreamCall:
        """Begin a call."""
        exchange = self._call(request, timeout, metadata, credentials, wait_for_ready, compression)
        return UnaryStreamCall(exchange, self._deserialize)


class StreamUnaryMethod(_Method, grpc.aio.StreamUnaryMultiCallable[Any, Any]):
    """Makes calls of any number of requests and one response."""

    def __call__(
        self,
        request_iterator: Requests | None = None,
        timeout: float | None = None,
        metadata: Entries | None = None,
        credentials: grpc.CallCredentials | None = None,
        wait_for_ready: bool | None = None,
        compression: grpc.Compression | None = None,
    ) -> StreamUnaryCall:
        """Begin a call."""
        unsupported = credentials or compression
        exchange = self._begin(None, timeout, metadata, wait_for_ready, unsupported)
        return StreamUnaryCall(exchange, self._deserialize, self._serialize, request_iterator)


class StreamStreamMethod(_Method, grpc.aio.StreamStreamMultiCallable[Any, Any]):
    """Makes calls of any number of requests and responses."""

    _streams_responses = True

    def __call__(
        self,
        request_iterator: Requests | None = None,
        timeout: float | None = None,
        metadata: Entries | None = None,
        credentials: grpc.CallCredentials | None = None,
        wait_for_ready: bool | None = None,
        compression: grpc.Compression | None = None,
    ) -> StreamStreamCall:
        """Begin a call."""
        unsupported = credentials or compression
        exchange = self._begin(None, timeout, metadata, wait_for_ready, unsupported)
        return StreamStreamCall(exchange, self._deserialize, self._serialize, request_iterator)
