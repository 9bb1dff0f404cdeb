"""Accounts over gRPC."""

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from gateway.accounts.v1.accounts_pb2 import (
    GetUsageRequest,
    GetUsageResponse,
    IdentifyRequest,
    IdentifyResponse,
)
from gateway.accounts.v1.accounts_pb2_grpc import AccountsServiceServicer
from services.common.grpc.authentication import Caller, caller

SERVICE_NAME = "gateway.accounts.v1.AccountsService"


# Returns the usage and the limits of a caller.
UsageOf = Callable[[Caller], Awaitable[GetUsageResponse]]


async def unknown_usage(owner: Caller) -> GetUsageResponse:
    """Return no usage: the `UsageOf` of services without a database."""
    return GetUsageResponse(subjects=owner.limits)


class AccountsServicer(AccountsServiceServicer):
    """Returns the caller, whom the interceptor has authenticated.

    Args:
        usage_of: reads the usage and the limits of a caller.
    """

    def __init__(self, usage_of: UsageOf = unknown_usage) -> None:
        self._usage_of = usage_of

    async def Identify(
        self, request: IdentifyRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> IdentifyResponse:
        """Return the owner of the call's key."""
        owner = caller.get()
        return IdentifyResponse(
            user_id=owner.user_id,
            team_id=owner.team_id,
            plan=owner.plan,
            key_id=owner.key_id,
            limits=owner.limits,
        )

    async def GetUsage(
        self, request: GetUsageRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> GetUsageResponse:
        """Return the caller's limits, what is left of them, and the user's usage."""
        return await self._usage_of(caller.get())
