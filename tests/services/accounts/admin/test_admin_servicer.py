"""AdminService over a TCP port, with its own authentication."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1 import accounts_pb2, admin_pb2
from gateway.accounts.v1.accounts_pb2_grpc import (
    AccountsServiceStub,
    add_AccountsServiceServicer_to_server,
)
from gateway.accounts.v1.admin_pb2_grpc import (
    AdminServiceStub,
    add_AdminServiceServicer_to_server,
)
from services.accounts.admin import assembly as admin
from services.accounts.admin.admin_keys import AdminCredential, hash_admin_key, make_admin_key
from services.accounts.admin.assembly import Administration
from services.accounts.admin.authentication import AdminAuthenticator
from services.accounts.repository import AccountRepository
from services.accounts.servicer import SERVICE_NAME, AccountsServicer
from services.common.clock import Clock
from services.common.grpc.authentication import call_metadata
from services.common.grpc.channels import open_channel
from services.common.grpc.server import Server
from services.common.settings import Settings

KEY = make_admin_key(bytes(32))
RPCS = [method.name for method in admin_pb2.DESCRIPTOR.services_by_name["AdminService"].methods]


@dataclass
class Services:
    """Stubs of the services on a TCP port, and a key of a user."""

    admin: Any
    accounts: Any
    key: str

    async def status(self, rpc: str, key: str) -> grpc.StatusCode:
        """Return the status of an empty request."""
        request_type = getattr(admin_pb2, f"{rpc}Request")
        try:
            await getattr(self.admin, rpc)(request_type(), metadata=call_metadata(key, ""))
        except grpc.aio.AioRpcError as error:
            return error.code()
        return grpc.StatusCode.OK


@asynccontextmanager
async def listening(engine: AsyncEngine, **configured: AdminCredential) -> AsyncIterator[Services]:
    repository = AccountRepository(engine)

    async def none() -> dict[str, AdminCredential]:
        return {}

    admins = AdminAuthenticator(configured, none, ttl_s=30)
    server = Server(repository.identify, max_message_bytes=1 << 20, identify_admin=admins)
    administration = Administration.start(
        *(Settings(), engine, Clock(), admins, [], CollectorRegistry()),
        lambda kind, subject_id: None,
    )
    server.add(add_AdminServiceServicer_to_server, administration.servicer, admin.SERVICE_NAME)
    server.add(add_AccountsServiceServicer_to_server, AccountsServicer(), SERVICE_NAME)
    port = server.listen("127.0.0.1:0")
    await server.start()
    async with open_channel(f"127.0.0.1:{port}", max_message_bytes=1 << 20) as channel:
        key = await repository.create_key("ada")
        yield Services(AdminServiceStub(channel), AccountsServiceStub(channel), key)
    await server.stop(0)
    await administration.stop()


@pytest.fixture
async def services(engine: AsyncEngine) -> AsyncIterator[Services]:
    async with listening(engine, setting=AdminCredential(hash_admin_key(KEY))) as running:
        yield running


async def test_every_call_needs_an_admin_key(services: Services) -> None:
    for rpc in RPCS:
        for key in ("", services.key, KEY[:-1], make_admin_key(b"x" * 32)):
            assert await services.status(rpc, key) == grpc.StatusCode.UNAUTHENTICATED
        assert await services.status(rpc, KEY) != grpc.StatusCode.UNAUTHENTICATED


async def test_an_admin_key_opens_no_other_service(services: Services) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await services.accounts.Identify(
            accounts_pb2.IdentifyRequest(), metadata=call_metadata(KEY, "")
        )
    assert raised.value.code() == grpc.StatusCode.UNAUTHENTICATED


async def test_without_admin_keys_there_is_no_such_service(engine: AsyncEngine) -> None:
    async with listening(engine) as services:
        for rpc in RPCS:
            for key in ("", services.key, KEY):
                assert await services.status(rpc, key) == grpc.StatusCode.UNIMPLEMENTED


async def test_the_actor_is_the_key_and_the_request(services: Services) -> None:
    # The peer is no trusted proxy, so that what it says about its own address is not believed.
    metadata = (*call_metadata(KEY, "req_7"), ("x-forwarded-for", "192.0.2.7"))
    checked = await services.admin.CheckAdminKey(
        admin_pb2.CheckAdminKeyRequest(), metadata=metadata
    )
    request = admin_pb2.CreateKeyRequest(user="eve", team="lab", plan=accounts_pb2.PLAN_TEAM_PRO)
    made = await services.admin.CreateKey(request, metadata=metadata)
    log = await services.admin.ListAuditEntries(
        admin_pb2.ListAuditEntriesRequest(page_size=1), metadata=metadata
    )
    (entry,) = log.entries
    assert (
        (entry.actor, entry.request_id) == (checked.admin_key_id, "req_7") == ("setting", "req_7")
    )
    assert entry.address == "127.0.0.1"
    assert entry.subject_id == made.api_key.id
    assert log.next_page_token


async def test_lists_are_complete_page_by_page(services: Services) -> None:
    metadata = call_metadata(KEY, "")
    for number in range(5):
        request = admin_pb2.CreateUserRequest(name=f"user{number}")
        await services.admin.CreateUser(request, metadata=metadata)
    names, token = [], ""
    while True:
        page = await services.admin.ListUsers(
            admin_pb2.ListUsersRequest(page_size=2, page_token=token), metadata=metadata
        )
        names += [user.name for user in page.users]
        token = page.next_page_token
        if not token:
            break
    assert names == ["ada", *(f"user{number}" for number in range(5))]
