"""Accounts over gRPC."""

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from gateway.accounts.v1.accounts_pb2 import (
    GetUsageRequest,
    GetUsageResponse,
    IdentifyRequest,
    IdentifyResponse,
    RedeemSignInCodeRequest,
    RedeemSignInCodeResponse,
)
from gateway.accounts.v1.accounts_pb2_grpc import AccountsServiceServicer
from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.grpc.authentication import Caller, caller

SERVICE_NAME = "gateway.accounts.v1.AccountsService"


# Returns the development key for a one-time code, or None.
Redeem = Callable[[str], Awaitable[str | None]]
# Returns the usage and the limits of a caller.
UsageOf = Callable[[Caller], Awaitable[GetUsageResponse]]


async def redeem_nothing(code: str) -> str | None:
    """Return None: the `Redeem` of a gateway without a development key."""
    return None


async def unknown_usage(owner: Caller) -> GetUsageResponse:
    """Return no usage: the `UsageOf` of services without a database."""
    return GetUsageResponse(subjects=owner.limits)


class AccountsServicer(AccountsServiceServicer):
    """Returns the caller, whom the interceptor has authenticated, and redeems sign-in codes.

    Args:
        redeem: redeems sign-in codes.
        usage_of: reads the usage and the limits of a caller.
    """

    def __init__(self, redeem: Redeem = redeem_nothing, usage_of: UsageOf = unknown_usage) -> None:
        self._redeem = redeem
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

    async def RedeemSignInCode(
        self,
        request: RedeemSignInCodeRequest,
        context: "grpc.aio.ServicerContext[Any, Any]",
    ) -> RedeemSignInCodeResponse:
        """Return the development key for a one-time code."""
        key = await self._redeem(request.code)
        if key is None:
            raise GatewayError(
                errors_pb2.REASON_NOT_FOUND,
                "code: used or expired; `gateway console` prints a new link",
                param="code",
            )
        return RedeemSignInCodeResponse(key=key)
