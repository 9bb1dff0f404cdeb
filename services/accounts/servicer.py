"""Accounts over gRPC."""

from typing import Any

import grpc

from gateway.accounts.v1.accounts_pb2 import IdentifyRequest, IdentifyResponse
from gateway.accounts.v1.accounts_pb2_grpc import AccountsServiceServicer
from services.common.authentication import caller

SERVICE_NAME = "gateway.accounts.v1.AccountsService"


class AccountsServicer(AccountsServiceServicer):
    """Answers who the caller is; the interceptor has found that out already."""

    async def Identify(
        self, request: IdentifyRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> IdentifyResponse:
        """Return the owner of the key that the call carries."""
        owner = caller.get()
        return IdentifyResponse(
            user_id=owner.user_id,
            team_id=owner.team_id,
            plan=owner.plan,
            key_id=owner.key_id,
            limits=owner.limits,
        )
