"""Behaviour common to the calls of all services: over a plain channel and within the process."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from gateway.accounts.v1.accounts_pb2 import PLAN_ENTERPRISE
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1 import inference_pb2, inference_pb2_grpc
from services.common import errors
from services.common.errors import GatewayError
from services.common.grpc.authentication import (
    Caller,
    call_metadata,
    caller,
    caller_key,
    service_authorization,
)
from services.common.grpc.channels import open_channel
from services.common.grpc.inprocess.channel import InProcessChannel
from services.common.grpc.server import Server
from services.common.process import logs

KEY = "gw-" + "a" * 43
NAME = "gateway.inference.v1.InferenceService"
CREDENTIAL = bytes(range(32))


async def identify(key: str) -> Caller:
    if key != KEY:
        raise errors.invalid_api_key()
    return Caller("ada", "", PLAN_ENTERPRISE)


class Servicer(inference_pb2_grpc.InferenceServiceServicer):
    """Does what a test hands it."""

    def __init__(self, act: Callable[[], Awaitable[None]]) -> None:
        self.act = act

    async def Generate(self, request, context):
        await self.act()
        return inference_pb2.GenerateResponse(id=caller.get().user_id)

    async def RunTask(self, request, context):
        await self.act()
        return inference_pb2.RunTaskResponse(text=caller.get().user_id)

    async def StreamGenerate(self, request, context) -> AsyncIterator:
        yield inference_pb2.StreamGenerateResponse(events=[inference_pb2.Event(text="a")])
        await self.act()
        yield inference_pb2.StreamGenerateResponse(events=[inference_pb2.Event(text="b")])


@pytest.fixture(params=["plain", "inprocess"])
def served(request):
    """A context manager that serves what a test acts, and returns a channel."""

    @asynccontextmanager
    async def serve(
        act: Callable[[], Awaitable[None]], credential: bytes | None = CREDENTIAL
    ) -> AsyncIterator[grpc.aio.Channel]:
        server = Server(identify, max_message_bytes=1 << 20, service_credential=credential)
        server.add(inference_pb2_grpc.add_InferenceServiceServicer_to_server, Servicer(act), NAME)
        port = server.listen("127.0.0.1:0")
        await server.start()
        if request.param == "inprocess":
            yield server.channel()
        else:
            address = f"127.0.0.1:{port}"
            async with open_channel(address, max_message_bytes=1 << 20) as channel:
                yield channel
        await server.stop(0)

    return serve


async def services_listed(channel: grpc.aio.Channel) -> set[str]:
    reflection = reflection_pb2_grpc.ServerReflectionStub(channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    response = await reflection.ServerReflectionInfo(iter([request])).read()
    return {service.name for service in response.list_services_response.service}


async def nothing() -> None:
    pass


async def generate(channel, key=KEY, **options):
    stub = inference_pb2_grpc.InferenceServiceStub(channel)
    return await stub.Generate(
        inference_pb2.GenerateRequest(), metadata=call_metadata(key, "req_1"), **options
    )


async def run_role(channel, authorization=None, user_id="ada"):
    stub = inference_pb2_grpc.InferenceServiceStub(channel)
    if authorization is None:
        authorization = service_authorization(CREDENTIAL)
    metadata = (("authorization", authorization), ("x-request-id", "req_1"))
    if user_id:
        metadata += (("x-user-id", user_id),)
    return await stub.RunTask(inference_pb2.RunTaskRequest(), metadata=metadata)


async def test_a_call_with_a_good_key_knows_its_caller(served):
    async with served(nothing) as channel:
        assert (await generate(channel)).id == "ada"


@pytest.mark.parametrize("key", ["gw-" + "b" * 43, "nonsense", ""])
async def test_a_call_with_a_bad_key_is_unauthenticated(served, key):
    async with served(nothing) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await generate(channel, key)
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert errors.from_rpc_error(refused.value).code == "invalid_api_key"


@pytest.mark.parametrize("second", [KEY, "gw-" + "b" * 43])
async def test_a_call_with_two_keys_is_refused(served, second):
    metadata = (*call_metadata(KEY, "req_1"), *call_metadata(second, "req_1"))
    async with served(nothing) as channel:
        stub = inference_pb2_grpc.InferenceServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.Generate(inference_pb2.GenerateRequest(), metadata=metadata)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "authorization" in errors.from_rpc_error(refused.value).message


async def test_a_call_without_metadata_is_unauthenticated(served):
    async with served(nothing) as channel:
        stub = inference_pb2_grpc.InferenceServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            async for _ in stub.StreamGenerate(inference_pb2.GenerateRequest()):
                pass
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_the_gateways_own_calls_carry_a_user_and_no_key(served):
    keys, requests = [], []

    async def act():
        keys.append(caller_key.get(None))
        requests.append(logs.request_id.get())

    async with served(act) as channel:
        assert (await run_role(channel)).text == "ada"
    assert (keys, requests) == ([None], ["req_1"])


@pytest.mark.parametrize(
    "authorization",
    [
        f"Bearer {KEY}",
        "",
        "Service ",
        service_authorization(CREDENTIAL)[:-1],
        service_authorization(CREDENTIAL) + "A",
        service_authorization(bytes(32)),
        service_authorization(CREDENTIAL).removeprefix("Service "),
        service_authorization(CREDENTIAL).replace("Service", "Bearer"),
    ],
)
async def test_no_other_credential_opens_the_gateways_own_calls(served, authorization):
    async with served(nothing) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await run_role(channel, authorization)
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert errors.from_rpc_error(refused.value).code == "invalid_api_key"


async def test_a_call_of_the_gateways_own_is_made_for_somebody(served):
    async with served(nothing) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await run_role(channel, user_id="")
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("credential", [None, b""])
@pytest.mark.parametrize("sent", [b"", CREDENTIAL])
async def test_the_gateways_own_calls_need_the_credential(served, credential, sent):
    async with served(nothing, credential) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await run_role(channel, service_authorization(sent))
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_the_gateways_own_credential_opens_no_other_call(served):
    metadata = (("authorization", service_authorization(CREDENTIAL)), ("x-user-id", "ada"))
    async with served(nothing) as channel:
        stub = inference_pb2_grpc.InferenceServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.Generate(inference_pb2.GenerateRequest(), metadata=metadata)
        with pytest.raises(grpc.aio.AioRpcError) as refused_stream:
            async for _ in stub.StreamGenerate(inference_pb2.GenerateRequest(), metadata=metadata):
                pass
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert refused_stream.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_the_gateways_own_credential_never_shows(served, caplog):
    async def act():
        raise RuntimeError("it broke")

    authorization = service_authorization(CREDENTIAL)
    messages = ""
    async with served(act) as channel:
        for sent in (authorization, authorization + "A"):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await run_role(channel, sent)
            messages += str(refused.value)
    assert "it broke" in caplog.text
    assert authorization.removeprefix("Service ") not in caplog.text + messages


async def test_a_failure_with_a_reason_reaches_the_other_side_whole(served):
    async def act():
        raise GatewayError(errors_pb2.REASON_RATE_LIMITED, "slow down", retry_after_s=7)

    async with served(act) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await generate(channel)
    error = errors.from_rpc_error(failed.value)
    assert (error.code, error.message, error.retry_after_s) == ("rate_limited", "slow down", 7)


async def test_a_failure_nobody_foresaw_keeps_its_text_and_is_logged(served, caplog):
    async def act():
        raise RuntimeError("the password is hush")

    async with served(act) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await generate(channel)
    assert failed.value.code() is grpc.StatusCode.INTERNAL
    assert "hush" not in str(failed.value)
    assert "hush" in caplog.text


async def test_what_a_stream_sent_before_it_broke_arrives(served):
    async def act():
        raise errors.unavailable("gone")

    got = []
    async with served(act) as channel:
        stub = inference_pb2_grpc.InferenceServiceStub(channel)
        call = stub.StreamGenerate(inference_pb2.GenerateRequest(), metadata=call_metadata(KEY, ""))
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            async for message in call:
                got.append(message.events[0].text)
    assert got == ["a"]
    assert errors.from_rpc_error(failed.value).code == "unavailable"


async def test_the_request_id_travels_with_the_call(served):
    seen = []

    async def act():
        seen.append(logs.request_id.get())

    async with served(act) as channel:
        await generate(channel)
    assert seen == ["req_1"]


@pytest.mark.parametrize("leaving", ["deadline", "cancel"])
async def test_work_ends_when_the_caller_no_longer_waits(served, leaving):
    began, ended = asyncio.Event(), asyncio.Event()

    async def act():
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with served(act) as channel:
        timeout = 0.2 if leaving == "deadline" else None
        beginning = asyncio.create_task(began.wait())
        while True:
            waiting = asyncio.create_task(generate(channel, timeout=timeout))
            await asyncio.wait([waiting, beginning], return_when=asyncio.FIRST_COMPLETED)
            if began.is_set():
                break
            # A busy machine let the time pass before the work began: the next call has more.
            assert timeout is not None and waiting.exception() is not None
            timeout *= 4
        if leaving == "cancel":
            waiting.cancel()
        await asyncio.wait_for(ended.wait(), 60)
        await asyncio.gather(waiting, return_exceptions=True)


async def test_health_and_reflection_need_no_key(served):
    async with served(nothing) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        for service in ("", NAME):
            answer = await health.Check(health_pb2.HealthCheckRequest(service=service))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        if isinstance(channel, InProcessChannel):
            return  # callers within the process have no use for reflection
        assert NAME in await services_listed(channel)


async def test_a_unix_socket_left_behind_is_replaced(tmp_path):
    path = tmp_path / "worker.sock"
    with socket.socket(socket.AF_UNIX) as leftover:
        leftover.bind(str(path))
    server = Server(identify, max_message_bytes=1 << 20)
    server.add(inference_pb2_grpc.add_InferenceServiceServicer_to_server, Servicer(nothing), NAME)
    assert server.listen(f"unix:{path}") == 0
    await server.start()
    async with open_channel(f"unix:{path}", max_message_bytes=1 << 20) as channel:
        assert (await generate(channel)).id == "ada"
        assert NAME in await services_listed(channel)
    await server.stop(0)
    assert not path.exists()
