"""Channels between processes: how patient they are with a peer that is busy."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.common.errors import invalid_api_key
from services.common.grpc.authentication import Caller
from services.common.grpc.channels import open_channel
from services.common.grpc.server import Server

MAX_MESSAGE = 1 << 20
SOON_S = 20.0
# What a busy machine may take to accept a connection, and longer than a try's first pause.
BUSY_S = 0.4


async def know_nobody(key: str) -> Caller:
    """Refuse every key; health needs none."""
    raise invalid_api_key()


@asynccontextmanager
async def busy_peer() -> AsyncIterator[str]:
    """Serve health at an address where a connection takes a while to say its first word."""
    server = Server(know_nobody, max_message_bytes=MAX_MESSAGE)
    port = server.listen("127.0.0.1:0")
    await server.start()
    passing: set[asyncio.Task[None]] = set()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        passing.add(task)
        there, to_peer = await asyncio.open_connection("127.0.0.1", port)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(copy(reader, to_peer))
                await asyncio.sleep(BUSY_S)
                group.create_task(copy(there, writer))
        finally:
            to_peer.close()
            writer.close()

    front = await asyncio.start_server(take, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{front.sockets[0].getsockname()[1]}"
    finally:
        front.close()
        await server.stop(0)
        if passing:
            await asyncio.wait(passing)


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    writer.close()


async def test_a_call_waits_for_a_peer_that_is_slow_to_answer():
    async with (
        busy_peer() as address,
        open_channel(address, max_message_bytes=MAX_MESSAGE) as channel,
    ):
        async with asyncio.timeout(SOON_S):
            answer = await health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest()
            )
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
