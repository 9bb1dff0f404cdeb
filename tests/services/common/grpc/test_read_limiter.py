"""Bounds of a gRPC server on a TCP port, over real connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from prometheus_client import CollectorRegistry

from gateway.accounts.v1.accounts_pb2 import PLAN_ENTERPRISE
from gateway.inference.v1 import inference_pb2, inference_pb2_grpc
from services.common import errors
from services.common.grpc.authentication import Caller, call_metadata
from services.common.grpc.channels import open_channel
from services.common.grpc.server import Server
from services.common.settings import Grpc

KEYS = {"gw-" + "a" * 43: "ada", "gw-" + "b" * 43: "bob"}
ADA, BOB = KEYS
NAME = "gateway.inference.v1.InferenceService"
GENERATE = f"/{NAME}/Generate"
KIB = 1 << 10
# Enough for whatever must happen; only a failing test waits so long.
SOON_S = 60.0


class Servicer(inference_pb2_grpc.InferenceServiceServicer):
    """Answers when a test lets it."""

    def __init__(self) -> None:
        self.asked = asyncio.Semaphore(0)
        self.may_answer = asyncio.Event()

    async def Generate(self, request, context):
        self.asked.release()
        await self.may_answer.wait()
        return inference_pb2.GenerateResponse(id="1")


class Served:
    def __init__(self, server: Server, port: int, registry: CollectorRegistry) -> None:
        self.server = server
        self.port = port
        self.servicer = Servicer()
        self._registry = registry

    def limits_reached(self, name: str) -> float:
        labels = {"limit": name}
        return self._registry.get_sample_value("gateway_limits_reached_total", labels) or 0


@asynccontextmanager
async def serving(**bounds: float) -> AsyncIterator[tuple[Served, grpc.aio.Channel]]:
    async def identify(key: str) -> Caller:
        if key not in KEYS:
            raise errors.invalid_api_key()
        return Caller(KEYS[key], "", PLAN_ENTERPRISE)

    registry = CollectorRegistry()
    server = Server(identify, max_message_bytes=1 << 20, bounds=Grpc(**bounds), registry=registry)
    served = Served(server, server.listen("127.0.0.1:0"), registry)
    server.add(inference_pb2_grpc.add_InferenceServiceServicer_to_server, served.servicer, NAME)
    await server.start()
    try:
        async with open_channel(f"127.0.0.1:{served.port}", max_message_bytes=1 << 20) as channel:
            yield served, channel
    finally:
        await server.stop(0)


def generate(channel: grpc.aio.Channel, key: str = ADA, size: int = 0):
    request = inference_pb2.GenerateRequest(model="x" * size)
    stub = inference_pb2_grpc.InferenceServiceStub(channel)
    return stub.Generate(request, metadata=call_metadata(key, "req_1"))


async def refusal(call) -> errors.GatewayError:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return errors.from_rpc_error(refused.value)


async def test_the_requests_of_one_user_are_bounded_together():
    async with serving(max_held_bytes_per_user=300 * KIB) as (served, channel):
        first = generate(channel, size=200 * KIB)
        await served.servicer.asked.acquire()
        error = await refusal(generate(channel, size=200 * KIB))
        assert (error.code, error.retry_after_s) == ("rate_limited", 1)
        assert served.limits_reached("grpc.max_held_bytes_per_user") == 1
        other = generate(channel, BOB, size=200 * KIB)
        await served.servicer.asked.acquire()
        served.servicer.may_answer.set()
        assert [(await call).id for call in (first, other)] == ["1", "1"]
        # What has ended counts no more.
        assert (await generate(channel, size=200 * KIB)).id == "1"


async def test_a_request_that_does_not_arrive_frees_its_place():
    # Longer each time that a busy machine takes as long to read what has arrived.
    for read_timeout_s in (0.2, 2, 20):
        async with serving(read_timeout_s=read_timeout_s, max_reads_per_user=1) as (
            served,
            channel,
        ):
            served.servicer.may_answer.set()
            metadata = call_metadata(ADA, "")
            silent = [channel.stream_unary(GENERATE)(metadata=metadata) for _ in range(2)]
            for call in silent:
                await call.wait_for_connection()
            patient = generate(channel)
            [other] = await asyncio.gather(generate(channel, BOB), return_exceptions=True)
            for call in silent:
                assert (await refusal(call)).code == "timeout"
            [late] = await asyncio.gather(patient, return_exceptions=True)
            reached = served.limits_reached("grpc.read_timeout_s")
        if reached == 2:
            break
    assert [answer.id for answer in (other, late)] == ["1", "1"]
    assert reached == 2


async def test_an_invalid_request_is_reported():
    async with serving() as (_, channel):
        metadata = call_metadata(ADA, "")
        assert (await refusal(channel.unary_unary(GENERATE)(b"\xff", metadata=metadata))).code == (
            "invalid_request"
        )
        empty = channel.stream_unary(GENERATE)(metadata=metadata)
        await empty.done_writing()
        assert (await refusal(empty)).code == "invalid_request"


async def test_two_credentials_are_refused_and_none_is_looked_up():
    async with serving() as (_, channel):
        for value in ([f"Bearer {ADA}", f"Bearer {BOB}"], [f"Bearer {ADA},Bearer {BOB}"]):
            metadata = [("authorization", each) for each in value]
            call = channel.unary_unary(GENERATE)(b"", metadata=metadata)
            error = await refusal(call)
            assert (error.code, error.param) == ("invalid_request", "authorization")


async def test_reflection_answers_one_question_after_another():
    async with serving() as (_, channel):
        call = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
        for _ in range(3):
            await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
            listed = (await call.read()).list_services_response.service
            assert NAME in {one.name for one in listed}
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF


@pytest.mark.parametrize("method", ["Check", "Watch"])
async def test_a_health_check_without_a_message_delays_others_briefly(method):
    async with serving() as (_, channel):
        silent = channel.stream_unary(f"/grpc.health.v1.Health/{method}")()
        await silent.wait_for_connection()
        answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await silent
        assert refused.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_a_server_does_not_wait_for_those_who_watch_its_health():
    async with serving() as (served, channel):
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
        async with asyncio.timeout(SOON_S):
            await served.server.stop(10 * SOON_S)


async def test_a_connection_that_says_nothing_is_closed():
    async with serving(handshake_timeout_s=0.2) as (served, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        async with asyncio.timeout(SOON_S):
            while await reader.read(1 << 16):
                pass
        writer.close()


async def test_connections_have_a_bound():
    async with serving(max_connections=2) as (served, _):
        opened = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(2)]
        for reader, _ in opened:
            assert await reader.read(1)  # HTTP/2 settings
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        async with asyncio.timeout(SOON_S):
            assert await reader.read() == b""
        for _, one in (*opened, (reader, writer)):
            one.close()
