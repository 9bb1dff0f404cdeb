"""Sums up records that are not in all sums yet: those of earlier versions of the gateway.

An earlier version added a record and its part of `usage_days`, without latencies, and left the
record unmarked. Unmarked records exist after an upgrade, and as long as workers of the earlier
version run beside newer ones. They are summed up a batch at a time, the newest first; the mark and
the sums are written in one transaction.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import orjson
from sqlalchemy import Select, select, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.accounts.usage.adding import (
    adding_in_postgresql,
    adding_rows_to_sqlite,
)
from services.accounts.usage.metrics import StoredUsageMetrics
from services.accounts.usage.sums import sums_of
from services.accounts.usage.tables import days, hours, model_hours, records
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.messages.usage_batch import OWN, SHARED, UsageBatch
from services.common.storage.database import reading_once, write
from services.common.storage.leases import Lease

# Records of one transaction: on SQLite it holds the lock of all writers for some 20 ms.
AT_ONCE = 500
# Pause between two transactions, in which others write.
_PAUSE_S = 0.05
_EVERY_S = 30.0
# A lease is renewed after some 3 seconds.
_LEASE_S = 60.0
_UNTIL_RENEWAL = 40

_ANY = text(f"SELECT 1 FROM {records.name} WHERE summed = 0 LIMIT 1")
# Processes that do this at the same time take different records.
_SUM_UP_IN_POSTGRESQL = adding_in_postgresql(
    f"UPDATE {records.name} SET summed = 1 WHERE id IN (SELECT id FROM {records.name} "
    "WHERE summed = 0 ORDER BY id DESC LIMIT $1 FOR UPDATE SKIP LOCKED)",
    in_usage=True,
)
_SUM_UP_IN_SQLITE = [
    adding_rows_to_sqlite(table, in_usage=table is days) for table in (days, hours, model_hours)
]
_MARK_IN_SQLITE = text(
    f"UPDATE {records.name} SET summed = 1 WHERE id IN (SELECT value FROM json_each(:ids))"
)

log = logging.getLogger(__name__)


def summing_lease(engine: AsyncEngine, clock: Clock) -> Lease:
    """Return the lease that lets one process at a time sum up records."""
    return Lease(engine, "usage_summing", _LEASE_S, clock)


async def sum_up(engine: AsyncEngine, at_most: int) -> int:
    """Add up to `at_most` unmarked records to the sums; return their number.

    Raises:
        GatewayError: unavailable, when the database does not answer.
    """
    if engine.dialect.name == "postgresql":

        async def transact(connection: AsyncConnection) -> int:
            summed = await connection.exec_driver_sql(_SUM_UP_IN_POSTGRESQL, (at_most,))
            return int(summed.scalar_one())

        return await write(engine, transact)

    async def transact_in_sqlite(connection: AsyncConnection) -> int:
        batch = _batch_of((await connection.execute(_newest(at_most))).all())
        if batch.size:
            for statement, sums in zip(_SUM_UP_IN_SQLITE, sums_of(batch), strict=True):
                await connection.exec_driver_sql(statement, sums)
            ids = [own[0] for rows in batch.groups.values() for own in rows]
            await connection.execute(_MARK_IN_SQLITE, {"ids": orjson.dumps(ids).decode()})
        return batch.size

    return await write(engine, transact_in_sqlite)


def _newest(at_most: int) -> Select[Any]:
    columns = (records.c[name] for name in (*SHARED, *OWN))
    return select(*columns).where(text("summed = 0")).order_by(records.c.id.desc()).limit(at_most)


def _batch_of(rows: Sequence[Sequence[Any]]) -> UsageBatch:
    batch = UsageBatch()
    for row in rows:
        batch.rows(tuple(row[: len(SHARED)])).append(tuple(row[len(SHARED) :]))
    return batch


class Summing:
    """Sums up unmarked records in the background; one of the processes does it at a time.

    Args:
        engine: the database.
        lease: see `summing_lease`.
        metrics: counts the records.
    """

    def __init__(self, engine: AsyncEngine, lease: Lease, metrics: StoredUsageMetrics) -> None:
        self._engine = engine
        self._lease = lease
        self._metrics = metrics
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Sum up in the background until `stop`."""
        self._running = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop; a transaction that was begun is rolled back or committed as a whole."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def sum_up_all(self) -> None:
        """Sum up all unmarked records, unless another process does.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        # Usually there is none. A single read costs less than taking the lease.
        async with reading_once(self._engine) as connection:
            if (await connection.execute(_ANY)).first() is None:
                return
        total = 0
        while await self._lease.take():
            for _ in range(_UNTIL_RENEWAL):
                number = await sum_up(self._engine, AT_ONCE)
                self._metrics.summed_later.inc(number)
                total += number
                if number < AT_ONCE:
                    log.info("earlier usage records summed up", extra={"records": total})
                    await self._lease.release()
                    return
                await asyncio.sleep(_PAUSE_S)

    async def _run(self) -> None:
        while True:
            try:
                await self.sum_up_all()
            except GatewayError as error:
                log.warning("summing up usage was interrupted", extra={"error": error.message})
            except Exception:
                log.exception("summing up usage failed")
            await asyncio.sleep(_EVERY_S)
