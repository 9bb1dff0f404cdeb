"""gRPC calls that are sent to exhaust the services' memory, directly and by Envoy."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from gateway.accounts.v1 import accounts_pb2, accounts_pb2_grpc
from services.common.errors import from_rpc_error
from tests.attacks.observer import Observer
from tests.e2e.gateway import Gateway, gateway_behind_envoy
from tests.thoroughness import is_soak
from tests.waiting import until

LARGE = 70 << 20
CONNECTIONS = 8 if is_soak() else 3
GENERATE = "/gateway.inference.v1.InferenceService/Generate"
STREAM_GENERATE = "/gateway.inference.v1.InferenceService/StreamGenerate"
CREATE_FILE = "/gateway.files.v1.FileStoreService/CreateFile"
HEALTH = "/grpc.health.v1.Health/Check"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
NOBODYS_KEY = "gw-" + "n" * 43


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory, upstream_port: int) -> Iterator[Gateway]:
    """Run a gateway with Envoy in front."""
    with gateway_behind_envoy(tmp_path_factory.mktemp("target"), upstream_port) as started:
        yield started


@pytest.fixture(params=["directly", "by Envoy"])
def port(request: pytest.FixtureRequest, target: Gateway) -> int:
    return target.services_port if request.param == "directly" else target.port


@asynccontextmanager
async def channel_to(port: int) -> AsyncIterator[grpc.aio.Channel]:
    """Open a connection of its own."""
    options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        yield channel


async def flood(port: int, method: str, key: str = "", connections: int = CONNECTIONS) -> set[str]:
    """Send a large message on each of several connections; return the status codes."""
    metadata = [("authorization", f"Bearer {key}")] if key else []
    message = bytes(LARGE)

    async def send() -> str:
        async with channel_to(port) as channel:
            try:
                await channel.unary_unary(method)(message, metadata=metadata, timeout=60)
            except grpc.aio.AioRpcError as error:
                return error.code().name
        return "OK"

    return set(await asyncio.gather(*(send() for _ in range(connections))))


@pytest.mark.thorough(one_in=5)
@pytest.mark.parametrize("key", ["", NOBODYS_KEY])
@pytest.mark.parametrize("method", [GENERATE, STREAM_GENERATE, CREATE_FILE])
async def test_large_messages_without_a_key_are_not_read(
    port: int, observer: Observer, method: str, key: str
) -> None:
    async with observer.watch() as measured:
        assert await flood(port, method, key) == {"UNAUTHENTICATED"}
    measured.assert_harmless()


async def is_serving(channel: grpc.aio.Channel) -> bool:
    """Return whether the services say so in time."""
    health = health_pb2_grpc.HealthStub(channel)
    try:
        answer = await health.Check(health_pb2.HealthCheckRequest(), timeout=10)
    except grpc.aio.AioRpcError as error:
        assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        return False
    return answer.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.thorough
@pytest.mark.parametrize("method", [HEALTH, REFLECTION])
async def test_large_messages_where_no_key_is_needed_are_cut_off(
    port: int, observer: Observer, method: str
) -> None:
    async with observer.watch() as measured:
        refusals = await flood(port, method)
        assert "OK" not in refusals
        assert refusals <= {"RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "UNAVAILABLE", "UNKNOWN"}
        # Whoever asks for the health of the services is answered all the same.
        async with channel_to(port) as channel:
            # A busy machine may take longer for a message than callers without a key have.
            await until(lambda: is_serving(channel))
    # A call ends before much of its message has come, and one is received at a time.
    measured.assert_harmless(100)


async def test_large_messages_of_one_user_take_turns(
    target: Gateway, attacker_key: str, observer: Observer
) -> None:
    async with observer.watch() as measured:
        refusals = await flood(target.services_port, GENERATE, attacker_key, 8)
    assert refusals == {"INVALID_ARGUMENT"}  # they are no messages of that method
    assert measured.rss_growth_mb < 3 * 2 * LARGE / (1 << 20)
    assert not measured.failures


async def test_two_credentials_are_one_too_many(target: Gateway, port: int) -> None:
    metadata = [("authorization", f"Bearer {key}") for key in (NOBODYS_KEY, target.key)]
    async with channel_to(port) as channel:
        accounts = accounts_pb2_grpc.AccountsServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await accounts.Identify(accounts_pb2.IdentifyRequest(), metadata=metadata)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert from_rpc_error(refused.value).param == "authorization"


async def test_links_are_not_for_strangers(target: Gateway) -> None:
    async with channel_to(target.services_port) as channel:
        opened = channel.stream_stream("/gateway.link.v1.Link/Open")()
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await opened.read()
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_compressed_messages_are_refused(target: Gateway) -> None:
    metadata = [("authorization", f"Bearer {target.key}")]
    async with channel_to(target.services_port) as channel:
        call = channel.unary_unary(GENERATE)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(bytes(1 << 20), metadata=metadata, compression=grpc.Compression.Gzip)
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_metadata_is_bounded(target: Gateway) -> None:
    metadata = [("authorization", f"Bearer {target.key}"), ("x-request-id", "x" * (64 << 10))]
    async with channel_to(target.services_port) as channel:
        accounts = accounts_pb2_grpc.AccountsServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await accounts.Identify(accounts_pb2.IdentifyRequest(), metadata=metadata)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
