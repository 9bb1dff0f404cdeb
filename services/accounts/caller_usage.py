"""What a caller has used, and what is left of the caller's limits."""

from datetime import UTC, datetime

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.accounts.v1.accounts_pb2 import GetUsageResponse
from gateway.accounts.v1.usage_pb2 import UsageSum
from services.accounts.limits.usage import usage_of_limits
from services.accounts.usage.reporting import COUNTS, cost_columns, cost_of
from services.accounts.usage.tables import DAY_MS, days
from services.common.clock import Clock
from services.common.grpc.authentication import Caller
from services.common.storage.database import reading


class CallerUsage:
    """Reads the usage and the limits of callers.

    Args:
        engine: the database.
        clock: the clock.
    """

    def __init__(self, engine: AsyncEngine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock

    async def of(self, caller: Caller) -> GetUsageResponse:
        """Return the state of a caller's limits, and the usage of the caller's user.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        now_ms = self._clock.now_ms()
        day = now_ms // DAY_MS
        today = datetime.fromtimestamp(now_ms // 1000, UTC).date()
        first = day - today.day + 1
        async with reading(self._engine) as connection:
            limits = await usage_of_limits(connection, caller.limits, now_ms)
            used = [
                await _usage_since(connection, caller.user_id, start, group)
                for start, group in ((day, today.isoformat()), (first, f"{today:%Y-%m}"))
            ]
        return GetUsageResponse(subjects=caller.limits, limits=limits, day=used[0], month=used[1])


async def _usage_since(
    connection: AsyncConnection, user_id: str, first_day: int, group: str
) -> UsageSum:
    """Return the usage of a user since a day."""
    query = select(
        *(func.coalesce(func.sum(days.c[name]), 0).label(name) for name in COUNTS), *cost_columns()
    ).where(days.c.user_id == user_id, days.c.day >= first_day)
    row = (await connection.execute(query)).one()
    used = UsageSum(group=group, cost_dollars=cost_of(row))
    for name in COUNTS:
        setattr(used, name, int(getattr(row, name)))
    return used
