"""The gRPC servicer of UsageService."""

from typing import Any

import grpc
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1 import usage_pb2
from gateway.accounts.v1.usage_pb2 import (
    RecordUsageRequest,
    RecordUsageResponse,
    ReportActivityRequest,
    ReportActivityResponse,
    ReportUsageRequest,
    ReportUsageResponse,
)
from gateway.accounts.v1.usage_pb2_grpc import UsageServiceServicer
from services.accounts.usage.activity import report_activity
from services.accounts.usage.recording import add_records
from services.accounts.usage.reporting import report
from services.common.clock import Clock
from services.common.errors import invalid
from services.common.messages.usage_batch import UsageBatch

SERVICE_NAME = usage_pb2.DESCRIPTOR.services_by_name["UsageService"].full_name

MAX_RECORDS = 1_000


class UsageServicer(UsageServiceServicer):
    """Implements `usage.proto`."""

    def __init__(self, engine: AsyncEngine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock

    async def RecordUsage(
        self,
        request: RecordUsageRequest | UsageBatch,
        context: "grpc.aio.ServicerContext[Any, Any]",
    ) -> RecordUsageResponse:
        """Add records."""
        batch = request if isinstance(request, UsageBatch) else _checked(request)
        return RecordUsageResponse(added=await add_records(self._engine, batch))

    async def ReportUsage(
        self, request: ReportUsageRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> ReportUsageResponse:
        """Return a page of sums of usage."""
        return await report(self._engine, request)

    async def ReportActivity(
        self, request: ReportActivityRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> ReportActivityResponse:
        """Return a page of sums of usage records, with latencies."""
        return await report_activity(self._engine, request, self._clock)


def _checked(request: RecordUsageRequest) -> UsageBatch:
    """Validate the records of another process, and return them as a batch.

    Raises:
        GatewayError: invalid, naming the field.
    """
    if not 1 <= len(request.records) <= MAX_RECORDS:
        raise invalid("records", f"records: must contain 1 to {MAX_RECORDS:,} records")
    for index, record in enumerate(request.records):
        if not record.id or record.time_ms <= 0 or not record.outcome:
            raise invalid(
                f"records[{index}]", f"records[{index}]: id, time and outcome are required"
            )
    return UsageBatch.of(request)
