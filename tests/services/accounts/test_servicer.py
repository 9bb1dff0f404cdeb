import grpc
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1 import accounts_pb2
from gateway.accounts.v1.accounts_pb2 import (
    IdentifyRequest,
    IdentifyResponse,
)
from gateway.accounts.v1.accounts_pb2_grpc import (
    AccountsServiceStub,
    add_AccountsServiceServicer_to_server,
)
from gateway.accounts.v1.sessions_pb2 import CreateSessionRequest, CreateSessionResponse
from gateway.accounts.v1.sessions_pb2_grpc import (
    SessionServiceServicer,
    SessionServiceStub,
    add_SessionServiceServicer_to_server,
)
from services.accounts.admin.keys import KeyAdministration
from services.accounts.keys import make_key
from services.accounts.limits.repository import LimitRepository
from services.accounts.limits.rules import SubjectKind, UsageLimits
from services.accounts.repository import AccountRepository
from services.accounts.servicer import SERVICE_NAME, AccountsServicer
from services.common.clock import Clock
from services.common.grpc.authentication import Caller, call_metadata
from services.common.grpc.channels import open_channel
from services.common.grpc.server import Server

MAX_MESSAGE = 1 << 20


async def test_identify_returns_the_owner_of_the_calls_key(
    repository: AccountRepository, keys: KeyAdministration, engine: AsyncEngine
) -> None:
    key = await repository.create_key("ada", "math", "team_pro")
    limits = UsageLimits(requests_per_minute=9)
    await LimitRepository(engine, Clock()).set(SubjectKind.TEAM, "team_000", limits)
    server = Server(repository.identify, max_message_bytes=MAX_MESSAGE)
    server.add(add_AccountsServiceServicer_to_server, AccountsServicer(), SERVICE_NAME)
    port = server.listen("127.0.0.1:0")
    await server.start()
    async with open_channel(f"127.0.0.1:{port}", max_message_bytes=MAX_MESSAGE) as channel:
        stub = AccountsServiceStub(channel)
        answer = await stub.Identify(IdentifyRequest(), metadata=call_metadata(key, "req_1"))
        assert answer == IdentifyResponse(
            user_id="user_001",
            team_id="team_000",
            plan=accounts_pb2.PLAN_TEAM_PRO,
            key_id=(await keys.page(1))[0].id,
            limits=[limits.to_proto(SubjectKind.TEAM, "team_000")],
        )
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            unknown = call_metadata(make_key(b"\xff" * 32), "req_2")
            await stub.Identify(IdentifyRequest(), metadata=unknown)
        assert raised.value.code() == grpc.StatusCode.UNAUTHENTICATED
    await server.stop(0)


async def test_a_sign_in_needs_no_key_and_is_short() -> None:
    class Sessions(SessionServiceServicer):
        async def CreateSession(
            self, request: CreateSessionRequest, context: object
        ) -> CreateSessionResponse:
            return CreateSessionResponse(token=f"of {request.code}")

    async def identify(key: str) -> Caller:
        raise AssertionError("no key was sent")

    server = Server(identify, max_message_bytes=MAX_MESSAGE)
    server.add(
        add_SessionServiceServicer_to_server, Sessions(), "gateway.accounts.v1.SessionService"
    )
    port = server.listen("127.0.0.1:0")
    await server.start()
    async with open_channel(f"127.0.0.1:{port}", max_message_bytes=MAX_MESSAGE) as channel:
        create_session = SessionServiceStub(channel).CreateSession
        answer = await create_session(CreateSessionRequest(code="good"))
        assert answer.token == "of good"
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await create_session(CreateSessionRequest(code="x" * (MAX_MESSAGE // 2)))
        assert raised.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    await server.stop(0)
