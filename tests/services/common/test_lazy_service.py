from typing import Any

import grpc
import pytest

from gateway.inference.v1 import inference_pb2, inference_pb2_grpc
from services.common.authentication import Caller
from services.common.channels import call_metadata
from services.common.server import Server

NAME = "gateway.inference.v1.InferenceService"
KEY = "gw-" + "k" * 43


class Models(inference_pb2_grpc.InferenceServiceServicer):
    """Counts the models that were asked for."""

    asked = 0

    async def ListModels(self, request, context):
        self.asked += 1
        return inference_pb2.ListModelsResponse()


async def _identify(key: str) -> Caller:
    return Caller("ada", "", 0)


class Offered:
    """A server that offers a service, and how often its servicer was made."""

    def __init__(self) -> None:
        self.made = 0
        self.models = Models()
        self.server = Server(_identify, max_message_bytes=1 << 20)
        self.server.add_lazy(self._register, NAME)

    def _register(self, server: Any) -> None:
        self.made += 1
        inference_pb2_grpc.add_InferenceServiceServicer_to_server(self.models, server)


async def _list_models(channel: grpc.aio.Channel) -> None:
    stub = inference_pb2_grpc.InferenceServiceStub(channel)
    await stub.ListModels(inference_pb2.ListModelsRequest(), metadata=call_metadata(KEY, "r"))


async def test_a_lazy_servicer_is_made_once_for_all_callers():
    offered = Offered()
    port = offered.server.listen("127.0.0.1:0")
    await offered.server.start()
    try:
        assert offered.made == 0
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as outside:
            for channel in (offered.server.channel(), outside, outside):
                await _list_models(channel)
        assert (offered.made, offered.models.asked) == (1, 3)
    finally:
        await offered.server.stop(0)


@pytest.mark.parametrize("path", [f"/{NAME}/NoSuchCall", "/another.Service/ListModels"])
async def test_a_call_of_no_lazy_service_is_refused(path):
    offered = Offered()
    await offered.server.start()
    call = offered.server.channel().unary_unary(path)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call(b"", metadata=call_metadata(KEY, "r"))
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
    await offered.server.stop(0)
