"""The LimitService's gRPC servicer."""

from collections.abc import Mapping
from typing import Any

import grpc

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import (
    GetLabelLimitsRequest,
    GetLabelLimitsResponse,
    Grant,
    LeaseRequest,
    LeaseResponse,
    Measure,
)
from gateway.accounts.v1.limits_pb2_grpc import LimitServiceServicer
from services.accounts.limits.leases import AllowanceClaim, LeaseRepository
from services.accounts.limits.repository import LimitRepository
from services.accounts.limits.rules import PLACES, SubjectKind
from services.common.errors import invalid
from services.common.limit_windows import MEASURES

SERVICE_NAME = limits_pb2.DESCRIPTOR.services_by_name["LimitService"].full_name

MAX_CLAIMS = 1_000
_MAX_ID = 64
_MAX_TAGS = 8
# Twice the greatest limit, so that sums stay within 64 bits.
_MAX_AMOUNT = 8 * 10**18
# The names of measures in the tables.
_NAMES: Mapping[Measure.ValueType, str] = {measure: name for name, measure in MEASURES.items()}


class LimitServicer(LimitServiceServicer):
    """Implements `limits.proto`; errors are raised as GatewayError."""

    def __init__(self, leases: LeaseRepository, limits: LimitRepository) -> None:
        self._leases = leases
        self._limits = limits

    async def Lease(
        self, request: LeaseRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> LeaseResponse:
        """Acquire, renew and give up leases of one worker."""
        if not 1 <= len(request.holder) <= _MAX_ID:
            raise invalid("holder", f"holder: must be 1 to {_MAX_ID} characters")
        if not 1 <= len(request.claims) <= MAX_CLAIMS:
            raise invalid("claims", f"claims: must contain 1 to {MAX_CLAIMS:,} claims")
        claims = [_claim(claim, f"claims[{index}]") for index, claim in enumerate(request.claims)]
        if len({claim.key for claim in claims}) < len(claims):
            raise invalid("claims", "claims: two claims are for the same allowance")
        leases = await self._leases.lease(request.holder, claims)
        return LeaseResponse(
            grants=[
                Grant(
                    granted=lease.granted.amount,
                    remaining=lease.granted.remaining,
                    limit=lease.limit,
                    spent=lease.spent,
                )
                for lease in leases
            ]
        )

    async def GetLabelLimits(
        self, request: GetLabelLimitsRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> GetLabelLimitsResponse:
        """Return the limits of the labels of a request."""
        if len(request.tags) > _MAX_TAGS:
            raise invalid("tags", f"tags: must contain at most {_MAX_TAGS} tags")
        return GetLabelLimitsResponse(
            limits=await self._limits.of_labels(request.user_id, request.tags, request.end_user)
        )


def _claim(claim: limits_pb2.Claim, path: str) -> AllowanceClaim:
    measure = _NAMES.get(claim.measure)
    if measure is None:
        raise invalid(f"{path}.measure", f"{path}.measure: is required")
    try:
        kind = SubjectKind.of_proto(claim.kind)
    except ValueError:
        raise invalid(f"{path}.kind", f"{path}.kind: is required") from None
    if not 1 <= len(claim.id) <= _MAX_ID:
        raise invalid(f"{path}.id", f"{path}.id: must be 1 to {_MAX_ID} characters")
    for name in (
        "window_start_ms",
        "ends_at_ms",
        "held_amount",
        "amount",
        "min_amount",
        "prefetch_amount",
        "reserved_amount",
        "reserved_until_ms",
        "period_days",
    ):
        if not 0 <= getattr(claim, name) <= _MAX_AMOUNT:
            raise invalid(f"{path}.{name}", f"{path}.{name}: out of range")
    if claim.reserved_amount > claim.held_amount:
        raise invalid(
            f"{path}.reserved_amount", f"{path}.reserved_amount: must be at most held_amount"
        )
    if claim.HasField("limit") != (kind in PLACES) or not 0 <= claim.limit <= _MAX_AMOUNT:
        raise invalid(f"{path}.limit", f"{path}.limit: must be set for {' and '.join(PLACES)} only")
    return AllowanceClaim(
        kind,
        claim.id,
        measure,
        claim.window_start_ms,
        claim.ends_at_ms,
        claim.held_amount,
        claim.amount,
        claim.min_amount,
        claim.prefetch_amount,
        claim.releases,
        claim.reserved_amount,
        claim.reserved_until_ms,
        claim.overdraws,
        claim.period_days,
        claim.limit if kind in PLACES else None,
    )
