"""Client of the LimitService, which keeps the counts of all workers."""

from collections.abc import Mapping, Sequence

import grpc

from gateway.accounts.v1 import limits_pb2, limits_pb2_grpc
from gateway.accounts.v1.limits_pb2 import (
    GetLabelLimitsRequest,
    Grant,
    LeaseRequest,
    SubjectLimits,
)
from services.common.errors import from_rpc_error
from services.common.grpc.authentication import service_authorization
from services.common.grpc.channels import USER_ID_KEY
from services.inference.allowances.allowance import Claim
from services.inference.allowances.leaser import OF_SETTINGS, Key
from services.inference.allowances.metrics import LimitMetrics

# The user id of the gateway's own calls, which must name one; leases are not of a single user.
_NOBODY = "gateway"


class LimitClient:
    """Leases allowances for one worker.

    Args:
        channel: channel to the accounts service.
        credential: the gateway's service credential.
        holder: id of the worker.
        metrics: metrics of lease calls.
    """

    def __init__(
        self, channel: grpc.aio.Channel, credential: bytes, holder: str, metrics: LimitMetrics
    ) -> None:
        self._stub = limits_pb2_grpc.LimitServiceStub(channel)
        self._metadata = (
            ("authorization", service_authorization(credential)),
            (USER_ID_KEY, _NOBODY),
        )
        self._holder = holder
        self._metrics = metrics

    async def lease(self, claims: Sequence[tuple[Key, Claim]]) -> Sequence[Grant]:
        """Return the grants to claims, in order; see `LeaseClient`."""
        messages = [_message(key, claim) for key, claim in claims]
        try:
            answer = await self._stub.Lease(
                LeaseRequest(holder=self._holder, claims=messages), metadata=self._metadata
            )
        except grpc.aio.AioRpcError as error:
            self._metrics.calls.labels("failed").inc()
            raise from_rpc_error(error) from None
        self._metrics.calls.labels("answered").inc()
        self._metrics.claims.inc(len(claims))
        return answer.grants

    async def label_limits(
        self, user_id: str, tags: Mapping[str, str], end_user: str
    ) -> Sequence[SubjectLimits]:
        """Return the limits of the labels of a user's request.

        Raises:
            GatewayError: unavailable, they cannot be read.
        """
        request = GetLabelLimitsRequest(user_id=user_id, tags=tags, end_user=end_user)
        try:
            response = await self._stub.GetLabelLimits(request, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None
        return tuple(response.limits)


def _message(key: Key, claim: Claim) -> limits_pb2.Claim:
    return limits_pb2.Claim(
        kind=key.kind,
        id=key.subject_id,
        measure=key.measure,
        window_start_ms=claim.window.start_ms,
        ends_at_ms=claim.ends_at_ms,
        held_amount=claim.held_amount,
        amount=claim.amount,
        min_amount=claim.min_amount,
        prefetch_amount=claim.prefetch_amount,
        releases=claim.releases,
        reserved_amount=claim.reserved_amount,
        reserved_until_ms=claim.reserved_until_ms,
        overdraws=claim.overdraws,
        period_days=key.period.days,
        limit=claim.limit if key.kind in OF_SETTINGS else None,
    )
