"""Envoy's own part: routes, limits, ids, and errors in the endpoint's own format."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from http import HTTPStatus

import aiohttp
import grpc
import openai
import pytest
from aiohttp import web
from grpc_health.v1 import health_pb2, health_pb2_grpc
from yarl import URL

from gateway.accounts.v1 import accounts_pb2, accounts_pb2_grpc
from tests.e2e.gateway import Gateway, envoy_before
from tests.waiting import until

TOO_LARGE = (64 << 20) + 1
# Enough for whatever must happen; only a failing test waits so long.
SOON_S = 60.0


@pytest.fixture
async def session(behind_envoy: Gateway) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(behind_envoy.address) as opened:
        yield opened


async def test_health_and_documents_are_open_to_everyone(session: aiohttp.ClientSession) -> None:
    for path in ("/healthz", "/readyz", "/openapi.json", "/docs"):
        async with session.get(path) as answer:
            assert answer.status == 200, path


@pytest.mark.parametrize(
    "path", ["/metrics", "/%6detrics", "/metrics?a", "/beta/v1/../../metrics", "/x", "/admin/v1/a"]
)
async def test_what_is_for_the_operator_is_not_there(
    session: aiohttp.ClientSession, path: str
) -> None:
    async with session.get(path) as answer:
        assert answer.status == 404
        content = await answer.json()
        assert answer.headers["x-request-id"]
    assert content["error"]["code"] == "not_found"


async def test_the_callers_request_id_comes_back_unchanged(session: aiohttp.ClientSession) -> None:
    own = "6f1d4c1e-9b3a-4d0e-8f5a-0123456789ab"
    for path in ("/healthz", "/nowhere"):
        async with session.get(path, headers={"x-request-id": own}) as answer:
            assert answer.headers.getall("x-request-id") == [own]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/beta/v1/messages", "request_too_large"),
        ("/coding/v1/messages", "request_too_large"),
        ("/beta/v1/chat/completions", "invalid_request_error"),
    ],
)
async def test_a_body_announced_too_large_is_refused_unread(
    behind_envoy: Gateway, path: str, kind: str
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", behind_envoy.port)
    writer.write(
        f"POST {path} HTTP/1.1\r\nhost: gateway\r\ncontent-length: {TOO_LARGE}\r\n\r\n".encode()
    )
    async with asyncio.timeout(SOON_S):
        head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413 ")
    size = next(
        int(line.split(b":")[1]) for line in head.split(b"\r\n") if b"content-length" in line
    )
    content = json.loads(await reader.readexactly(size))
    assert content["error"]["type"] == kind
    assert str(TOO_LARGE - 1) in content["error"]["message"]
    writer.close()


async def test_a_model_name_keeps_its_slash(
    session: aiohttp.ClientSession, behind_envoy: Gateway
) -> None:
    headers = {"authorization": f"Bearer {behind_envoy.key}"}
    address = URL(f"{behind_envoy.address}/beta/v1/models/sandbox%2Fecho", encoded=True)
    async with session.get(address, headers=headers) as answer:
        assert (await answer.json())["id"] == "sandbox/echo"


async def test_responses_come_over_a_websocket(behind_envoy: Gateway) -> None:
    url = f"{behind_envoy.address}/v1"
    async with (
        openai.AsyncOpenAI(base_url=url, api_key=behind_envoy.key, max_retries=0) as client,
        client.responses.connect() as connection,
    ):
        for text in ("one", "two"):
            await connection.response.create(model="sandbox/echo", input=text, store=False)
            while (event := await connection.recv()).type not in ("error", "response.completed"):
                pass
            assert event.type == "response.completed"
            assert f'"{text}"' in event.response.output_text


async def test_grpc_callers_reach_the_services(behind_envoy: Gateway) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{behind_envoy.port}") as channel:
        health = await health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest(), wait_for_ready=True, timeout=SOON_S
        )
        assert health.status == health_pb2.HealthCheckResponse.SERVING
        accounts = accounts_pb2_grpc.AccountsServiceStub(channel)
        owner = await accounts.Identify(
            accounts_pb2.IdentifyRequest(),
            metadata=[("authorization", f"Bearer {behind_envoy.key}")],
            timeout=SOON_S,
        )
        assert owner.plan == accounts_pb2.PLAN_ENTERPRISE
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await accounts.Identify(accounts_pb2.IdentifyRequest(), timeout=SOON_S)
    assert raised.value.code() == grpc.StatusCode.UNAUTHENTICATED


async def test_an_unreachable_gateway_is_an_error_of_the_dialect() -> None:
    headers = {"authorization": "Bearer gw-secret", "x-request-id": "mine"}
    async with before_a_stand_in() as (envoy, facade):
        await facade.cleanup()
        async with aiohttp.ClientSession(envoy.address, headers=headers) as session:
            async with session.post("/beta/v1/messages") as answer:
                assert answer.status == HTTPStatus.SERVICE_UNAVAILABLE
                assert int(answer.headers["retry-after"]) >= 1
                assert answer.headers["x-request-id"] == "mine"
                content = await answer.json()
                assert (content["type"], content["request_id"]) == ("error", "mine")
                assert content["error"]["type"] == "overloaded_error"
            async with session.post("/beta/v1/chat/completions") as answer:
                assert answer.status == HTTPStatus.SERVICE_UNAVAILABLE
                assert int(answer.headers["retry-after"]) >= 1
                content = await answer.json()
                assert content["error"]["type"] == "server_error"
                assert content["error"]["code"] == "unavailable"


async def test_the_access_log_identifies_requests_without_keys() -> None:
    headers = {"authorization": "Bearer gw-secret", "x-request-id": "mine"}
    async with before_a_stand_in() as (envoy, _):
        async with (
            aiohttp.ClientSession(envoy.address, headers=headers) as session,
            session.get("/beta/v1/models?key=gw-query") as answer,
        ):
            assert answer.status == HTTPStatus.NOT_FOUND
        await asyncio.to_thread(envoy.process.stop)
    lines = envoy.process.output.splitlines()
    logged = [json.loads(line) for line in lines if line.startswith("{")]
    (entry,) = [line for line in logged if line["request_id"] == "mine"]
    assert (entry["method"], entry["path"], entry["status"]) == ("GET", "/beta/v1/models", 404)
    assert "gw-" not in envoy.process.output


async def test_a_request_that_was_sent_is_never_sent_again() -> None:
    seen = []

    async def break_off(request: web.Request) -> web.Response:
        seen.append(await request.read())
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    async with (
        before_a_stand_in(web.post("/beta/v1/messages", break_off)) as (envoy, _),
        aiohttp.ClientSession(envoy.address) as session,
        session.post("/beta/v1/messages", data=b"{}") as answer,
    ):
        assert answer.status == HTTPStatus.SERVICE_UNAVAILABLE
    assert seen == [b"{}"]


async def test_streams_end_before_envoy_does() -> None:
    goes_on = asyncio.Event()

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first ")
        await goes_on.wait()
        await response.write(b"last")
        return response

    async with (
        before_a_stand_in(web.post("/beta/v1/messages", stream)) as (envoy, _),
        aiohttp.ClientSession(envoy.address) as session,
        session.post("/beta/v1/messages") as answer,
    ):
        assert await answer.content.readany() == b"first "
        os.kill(envoy.process.pid, signal.SIGTERM)

        async def is_closed() -> bool:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", envoy.port)
            except (ConnectionRefusedError, ConnectionResetError):
                # Reset: it was waiting to be accepted when Envoy closed its socket.
                return True
            writer.close()
            return False

        await until(is_closed, every_s=0.05)
        goes_on.set()
        assert await answer.content.read() == b"last"
        assert await asyncio.to_thread(envoy.process.stop) == 0


@asynccontextmanager
async def before_a_stand_in(
    *routes: web.RouteDef,
) -> AsyncIterator[tuple[Gateway, web.AppRunner]]:
    """Run Envoy in front of a facade that knows `/readyz` and some routes alone."""

    async def ready(request: web.Request) -> web.Response:
        return web.Response()

    app = web.Application()
    app.add_routes([web.get("/readyz", ready), *routes])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    starting = envoy_before(runner.addresses[0][1])
    try:
        with ExitStack() as stack:
            # The stand-in answers on this loop while Envoy waits for it.
            envoy = await asyncio.to_thread(stack.enter_context, starting)
            yield envoy, runner
    finally:
        await runner.cleanup()
