"""gRPC calls within a process that run the servicer in the caller's own task."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import grpc

from gateway.memory.v1 import responses_pb2, responses_pb2_grpc
from services.common.channels import Metadata
from services.common.inprocess.channel import InProcessChannel

_RESPONSES = f"/{responses_pb2.DESCRIPTOR.services_by_name['ResponseService'].full_name}"

# Takes a request and the metadata of the call.
DirectCall = Callable[[Any, Metadata], Awaitable[Any]]


def direct_call(channel: grpc.aio.Channel, method: str, stub: Callable[..., Any]) -> DirectCall:
    """Return a callable for a unary method.

    Within a process the servicer runs in the caller's task. For another process `stub` is called.
    """
    if isinstance(channel, InProcessChannel):
        return channel.direct(method)
    return lambda request, metadata: stub(request, metadata=metadata)


def direct_response_call(
    channel: grpc.aio.Channel, name: Literal["CheckCapacity", "CreateResponse"]
) -> DirectCall:
    """Return a callable for a method of the ResponseService; see `direct_call`."""
    stub = getattr(responses_pb2_grpc.ResponseServiceStub(channel), name)
    return direct_call(channel, f"{_RESPONSES}/{name}", stub)
