from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import Claim, Grant, LeaseRequest
from gateway.accounts.v1.limits_pb2_grpc import (
    LimitServiceStub,
    add_LimitServiceServicer_to_server,
)
from services.accounts.limits.leases import LeaseRepository
from services.accounts.limits.repository import LimitRepository
from services.accounts.limits.rules import SubjectKind, UsageLimits
from services.accounts.limits.servicer import SERVICE_NAME, LimitServicer
from services.accounts.repository import AccountRepository
from services.common.clock import Clock
from services.common.grpc.authentication import call_metadata, service_authorization
from services.common.grpc.channels import USER_ID_KEY
from services.common.grpc.server import Server

CREDENTIAL = b"\x07" * 32
OWN = (("authorization", service_authorization(CREDENTIAL)), (USER_ID_KEY, "gateway"))


def _claim(**changed: Any) -> Claim:
    return Claim(
        **{
            "kind": limits_pb2.SUBJECT_KIND_KEY,
            "id": "key_1",
            "measure": limits_pb2.MEASURE_TOKENS_PER_MINUTE,
            "window_start_ms": 60_000,
            "ends_at_ms": 1 << 50,
            "amount": 7,
            **changed,
        }
    )


@pytest.fixture
async def channel(
    repository: AccountRepository, engine: AsyncEngine
) -> AsyncIterator[grpc.aio.Channel]:
    server = Server(repository.identify, max_message_bytes=1 << 20, service_credential=CREDENTIAL)
    servicer = LimitServicer(LeaseRepository(engine, Clock()), LimitRepository(engine, Clock()))
    server.add(add_LimitServiceServicer_to_server, servicer, SERVICE_NAME)
    await server.start()
    yield server.channel()
    await server.stop(0)


async def test_claims_are_answered_in_order(channel: grpc.aio.Channel, engine: AsyncEngine) -> None:
    await LimitRepository(engine, Clock()).set(
        SubjectKind.KEY, "key_1", UsageLimits(tokens_per_minute=5)
    )
    request = LeaseRequest(holder="a", claims=[_claim(), _claim(id="key_2", amount=1)])
    first, second = (await LimitServiceStub(channel).Lease(request, metadata=OWN)).grants
    assert first == Grant(granted=5, remaining=0, limit=5)
    assert (second.granted, second.HasField("limit")) == (1, False)


async def test_a_callers_key_opens_no_leases(
    channel: grpc.aio.Channel, repository: AccountRepository
) -> None:
    key = await repository.create_key("ada")
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await LimitServiceStub(channel).Lease(
            LeaseRequest(holder="a", claims=[_claim()]), metadata=call_metadata(key, "req_1")
        )
    assert raised.value.code() == grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (LeaseRequest(claims=[_claim()]), "holder"),
        (LeaseRequest(holder="x" * 65, claims=[_claim()]), "holder"),
        (LeaseRequest(holder="a"), "claims"),
        (LeaseRequest(holder="a", claims=[_claim(id=str(n)) for n in range(1_001)]), "claims"),
        (LeaseRequest(holder="a", claims=[_claim(), _claim(amount=1)]), "claims"),
        (LeaseRequest(holder="a", claims=[_claim(kind=0)]), "claims[0].kind"),
        (LeaseRequest(holder="a", claims=[_claim(measure=0)]), "claims[0].measure"),
        (LeaseRequest(holder="a", claims=[_claim(id="")]), "claims[0].id"),
        (LeaseRequest(holder="a", claims=[_claim(held_amount=-1)]), "claims[0].held_amount"),
        (LeaseRequest(holder="a", claims=[_claim(amount=(1 << 63) - 1)]), "claims[0].amount"),
    ],
)
async def test_a_claim_that_breaks_a_rule_is_refused(
    channel: grpc.aio.Channel, request_: LeaseRequest, field: str
) -> None:
    with pytest.raises(
        grpc.aio.AioRpcError, match=f"{field.replace('[', '.').replace(']', '.')}: "
    ):
        await LimitServiceStub(channel).Lease(request_, metadata=OWN)
