"""A stub of the inference service that accepts lazy and large requests too."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import grpc

from facade.direct_calls import direct_call
from gateway.inference.v1 import inference_pb2, inference_pb2_grpc
from gateway.inference.v1.inference_pb2 import GenerateResponse
from services.common.channels import Metadata
from services.common.inprocess.channel import InProcessChannel
from services.common.inprocess.delivery import deliver
from services.common.inprocess.pipe import Receiver

_SERVICE = f"/{inference_pb2.DESCRIPTOR.services_by_name['InferenceService'].full_name}"

# Takes a request and the metadata of the call.
Generate = Callable[[Any, Metadata], Awaitable[GenerateResponse]]
# Takes a receiver of the responses too.
StreamGenerate = Callable[[Any, Metadata, Receiver], Awaitable[None]]


def inference_stub(
    channel: grpc.aio.Channel,
) -> "inference_pb2_grpc.InferenceServiceAsyncStub":
    """Return a stub whose calls accept a request, a lazy request or a large request."""
    return inference_pb2_grpc.InferenceServiceStub(cast(grpc.aio.Channel, _Channel(channel)))


def direct_generate(channel: grpc.aio.Channel) -> Generate:
    """Return a callable for `Generate`; see `direct_call`."""
    return direct_call(channel, f"{_SERVICE}/Generate", inference_stub(channel).Generate)


def direct_stream_generate(channel: grpc.aio.Channel) -> StreamGenerate:
    """Return a callable for `StreamGenerate`, like `direct_generate` for `Generate`."""
    if isinstance(channel, InProcessChannel):
        return channel.direct_stream(f"{_SERVICE}/StreamGenerate")
    stub = inference_stub(channel)
    return lambda request, metadata, receiver: deliver(
        stub.StreamGenerate(request, metadata=metadata), receiver
    )


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
