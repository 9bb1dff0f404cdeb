"""Calls of services that are served by the task that makes them, where both are in one process."""

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from gateway.memory.v1 import responses_pb2, responses_pb2_grpc
from gateway.memory.v1.responses_pb2 import CheckRoomResponse, CreateResponseResponse
from services.common.channels import Metadata
from services.common.inprocess.channel import InProcessChannel

_RESPONSES = f"/{responses_pb2.DESCRIPTOR.services_by_name['ResponseService'].full_name}"

# Take a request and the metadata of the call.
Call = Callable[[Any, Metadata], Awaitable[Any]]
CheckRoom = Callable[[Any, Metadata], Awaitable[CheckRoomResponse]]
CreateResponse = Callable[[Any, Metadata], Awaitable[CreateResponseResponse]]


def direct_call(channel: grpc.aio.Channel, method: str, stub: Callable[..., Any]) -> Call:
    """Return what calls a unary method for a task that serves one HTTP request alone.

    Within a process the task serves the call too; `stub` calls the method of another process.
    """
    if isinstance(channel, InProcessChannel):
        return channel.direct(method)
    return lambda request, metadata: stub(request, metadata=metadata)


def direct_check_room(channel: grpc.aio.Channel) -> CheckRoom:
    """Return what calls `CheckRoom`; see `direct_call`."""
    stub = responses_pb2_grpc.ResponseServiceStub(channel)
    return direct_call(channel, f"{_RESPONSES}/CheckRoom", stub.CheckRoom)


def direct_create_response(channel: grpc.aio.Channel) -> CreateResponse:
    """Return what calls `CreateResponse`; see `direct_call`."""
    stub = responses_pb2_grpc.ResponseServiceStub(channel)
    return direct_call(channel, f"{_RESPONSES}/CreateResponse", stub.CreateResponse)
