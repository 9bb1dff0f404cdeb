"""Batches of events as messages, in one process and between two."""

from collections.abc import AsyncIterator

from gateway.accounts.v1.accounts_pb2 import PLAN_ENTERPRISE
from gateway.inference.v1 import inference_pb2, inference_pb2_grpc
from gateway.inference.v1.inference_pb2 import Event, GenerateRequest, StreamGenerateResponse
from services.common.grpc.authentication import Caller, call_metadata
from services.common.grpc.channels import open_channel
from services.common.grpc.server import Server
from services.inference.servicer import SERVICE_NAME
from services.inference.stream.batches import EventBatch

EVENTS = [Event(text="a", pieces=[b"a"]), Event(block=1, input="{}")]


class Servicer(inference_pb2_grpc.InferenceServiceServicer):
    """Streams one batch."""

    async def StreamGenerate(self, request, context) -> AsyncIterator:
        yield EventBatch(EVENTS)


async def identify(key: str) -> Caller:
    return Caller("ada", "", PLAN_ENTERPRISE)


def test_a_batch_is_serialized_as_its_message() -> None:
    message = StreamGenerateResponse(events=EVENTS)
    assert EventBatch(EVENTS).SerializeToString() == message.SerializeToString()
    assert EventBatch([]).ByteSize() == 0
    # Without the tags of the events.
    assert 0 <= message.ByteSize() - EventBatch(EVENTS).ByteSize() <= 4 * len(EVENTS)


async def test_another_process_receives_a_message() -> None:
    server = Server(identify, max_message_bytes=1 << 20)
    server.add(inference_pb2_grpc.add_InferenceServiceServicer_to_server, Servicer(), SERVICE_NAME)
    port = server.listen("127.0.0.1:0")
    await server.start()
    try:
        async with open_channel(f"127.0.0.1:{port}", max_message_bytes=1 << 20) as channel:
            stub = inference_pb2_grpc.InferenceServiceStub(channel)
            metadata = call_metadata("gw-" + "a" * 43, "req_1")
            call = stub.StreamGenerate(GenerateRequest(), metadata=metadata)
            received = [message async for message in call]
    finally:
        await server.stop(0)
    assert received == [StreamGenerateResponse(events=EVENTS)]
    assert isinstance(received[0], inference_pb2.StreamGenerateResponse)
