"""A stub of the inference service that accepts lazy and large requests too."""

from collections.abc import Callable
from typing import Any, cast

import grpc

from gateway.inference.v1 import inference_pb2_grpc


def inference_stub(
    channel: grpc.aio.Channel,
) -> "inference_pb2_grpc.InferenceServiceAsyncStub":
    """Return a stub whose calls accept a request, a lazy request or a large request."""
    return inference_pb2_grpc.InferenceServiceStub(cast(grpc.aio.Channel, _Channel(channel)))


class _Channel:
    """The part of a channel that a stub without client streams uses."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    def unary_unary(
        self,
        method: str,
        request_serializer: Callable[[Any], bytes],
        response_deserializer: Callable[[bytes], Any],
        _registered_method: bool = False,
    ) -> Any:
        return self._channel.unary_unary(method, _serialize, response_deserializer)

    def unary_stream(
        self,
        method: str,
        request_serializer: Callable[[Any], bytes],
        response_deserializer: Callable[[bytes], Any],
        _registered_method: bool = False,
    ) -> Any:
        return self._channel.unary_stream(method, _serialize, response_deserializer)


def _serialize(request: Any) -> bytes:
    serialized: bytes = request.SerializeToString()
    return serialized
