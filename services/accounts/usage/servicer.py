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
from services.accounts.usage.metrics import StoredUsageMetrics
from services.accounts.usage.recording import add_records
from services.accounts.usage.reporting import report
from services.common.clock import Clock
from services.common.errors import invalid
from services.common.grpc.authentication import caller
from services.common.ids import RECORD, time_prefix
from services.common.messages.usage_batch import UsageBatch

SERVICE_NAME = usage_pb2.DESCRIPTOR.services_by_name["UsageService"].full_name

MAX_RECORDS = 1_000


class UsageServicer(UsageServiceServicer):
    """Implements `usage.proto`.

    Args:
        engine: the database, to which records are added.
        reports: the database that reports read: the same one, or a replica of it.
        clock: the clock.
        metrics: observes reports.
    """

    def __init__(
        self, engine: AsyncEngine, reports: AsyncEngine, clock: Clock, metrics: StoredUsageMetrics
    ) -> None:
        self._engine = engine
        self._reports = reports
        self._clock = clock
        self._metrics = metrics

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
        with self._metrics.reporting("usage"):
            return await report(self._reports, request)

    async def ReportActivity(
        self, request: ReportActivityRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> ReportActivityResponse:
        """Return a page of sums of usage in an interval, with latencies."""
        with self._metrics.reporting("activity"):
            return await report_activity(self._reports, request, self._clock)

    async def ReportOwnActivity(
        self, request: ReportActivityRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> ReportActivityResponse:
        """Return a page of sums of the usage of the caller's user, with latencies."""
        own = ReportActivityRequest()
        own.CopyFrom(request)
        own.filter.user_id = caller.get().user_id
        with self._metrics.reporting("activity"):
            return await report_activity(self._reports, own, self._clock)


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
        if not record.id.startswith(beginning := time_prefix(RECORD, record.time_ms)):
            path = f"records[{index}].id"
            raise invalid(path, f"{path}: must begin with {beginning}, the time in hex digits")
    return UsageBatch.of(request)
