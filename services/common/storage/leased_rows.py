"""Leases in the database: rows that one process at a time holds, until they expire.

The column `ends_at_ms` of a leased row has the expiry time. The holder renews the lease while it
works. The lease of a dead process expires, or is released at once if another process can detect the
death (see `process_registry`). The clocks of machines differ, so a lease only avoids duplicate
work: a transaction under a lease must check that the row is still held.

When a machine's clock is set, leases that were written by its other time count as held until their
holders have had time to renew them. Those that still end too far in the future are then free: the
clock was set back, and their holder has died.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from contextvars import Context
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, Row, Table, delete, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from services.common.clock import Clock, ExpiryClock
from services.common.errors import GatewayError

# Time until a renewal as a fraction of the lease's duration: several renewals may fail.
_RENEWED_AFTER = 0.2
# How much later than a lease of this process one of another may end: clocks and settings differ.
_MAX_SKEW_MS = 300_000

log = logging.getLogger(__name__)

Key = TypeVar("Key")


def holder_prefix(kind: str, process: str) -> str:
    """Return the prefix of the holder ids of a process."""
    return f"{kind}_{process}_"


def is_held_by_process(holder: ColumnElement[str], kind: str, process: str) -> ColumnElement[bool]:
    """Return the SQL condition that a process holds a row; `holder` is the holder id's column."""
    return holder.startswith(holder_prefix(kind, process), autoescape=True)


async def delete_in_order(
    connection: AsyncConnection, table: Table, which: ColumnElement[bool]
) -> int:
    """Delete rows, locked in the order of their keys; return the number of deleted rows.

    All transactions lock in this order, which prevents deadlocks.
    """
    [key] = table.primary_key.columns
    ordered = select(key).where(which).order_by(key).with_for_update()
    return (await connection.execute(delete(table).where(key.in_(ordered)))).rowcount


class LeasedRows:
    """The leases on rows of one table.

    Args:
        table: has a primary key of one column, and `ends_at_ms`.
        clock: the clock.
        length_s: duration of a lease in seconds.

    Attributes:
        length_s: see the argument.
    """

    def __init__(self, table: Table, clock: Clock, length_s: float) -> None:
        self._table = table
        self._clock = clock
        self._expiry = ExpiryClock(clock, length_s)
        self.length_s = length_s

    def ends_at_ms(self) -> int:
        """Return the expiry of a lease that begins now, in Unix milliseconds."""
        return self._clock.now_ms() + int(self.length_s * 1000)

    def has_expired(self) -> ColumnElement[bool]:
        """Return the SQL condition that a row's lease has expired."""
        earliest_ms, latest_ms = self._expired_outside()
        ends_at_ms = self._table.c.ends_at_ms
        return or_(ends_at_ms <= earliest_ms, ends_at_ms > latest_ms)

    def is_expired(self, ends_at_ms: int) -> bool:
        """Return whether a lease with this expiry has expired."""
        earliest_ms, latest_ms = self._expired_outside()
        return not earliest_ms < ends_at_ms <= latest_ms

    def _expired_outside(self) -> tuple[int, int]:
        """Return the times between which the leases end that are held."""
        earliest_ms, latest_ms = self._expiry.bounds_ms()
        return earliest_ms, latest_ms + int(self.length_s * 1000) + _MAX_SKEW_MS

    async def hold(
        self,
        connection: AsyncConnection,
        which: ColumnElement[bool],
        *,
        skip_locked: bool = False,
        **values: Any,
    ) -> Sequence[Row[Any]]:
        """Acquire or renew the leases on rows, for the whole duration from now; return the rows.

        Args:
            connection: a connection in a transaction.
            which: selects the rows; its condition on holder or expiry decides whether leases are
                renewed, acquired when free, or stolen.
            skip_locked: whether rows locked by other transactions are skipped rather than waited
                for.
            values: further columns to update, such as the holder.
        """
        [key] = self._table.primary_key.columns
        # All transactions lock in this order, which prevents deadlocks.
        ordered = (
            select(key)
            .where(which)
            .order_by(key)
            .with_for_update(key_share=True, skip_locked=skip_locked)
        )
        held = (
            update(self._table)
            .where(key.in_(ordered))
            .values(ends_at_ms=self.ends_at_ms(), **values)
            .returning(self._table)
        )
        rows: Sequence[Row[Any]] = (await connection.execute(held)).all()
        return rows


class LeaseRenewer(Generic[Key]):
    """Renews all leases of one process together.

    Args:
        renew: renews leases and returns the keys of those still held; may raise GatewayError.
        length_s: duration of a lease in seconds.
    """

    def __init__(
        self, renew: Callable[[Collection[Key]], Awaitable[Collection[Key]]], length_s: float
    ) -> None:
        self._renew = renew
        self._every_s = length_s * _RENEWED_AFTER
        self._held: dict[Key, Callable[[], object]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def add(self, key: Key, on_lost: Callable[[], object]) -> None:
        """Renew a lease until it is discarded; call `on_lost` if it is lost."""
        self._held[key] = on_lost
        self._schedule()

    def discard(self, key: Key) -> None:
        """Stop renewing a lease; an unknown key is ignored."""
        self._held.pop(key, None)
        if not self._held and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def close(self) -> None:
        """Wait for the running renewal, if there is one."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    def _schedule(self) -> None:
        if self._held and self._timer is None and self._task is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._every_s, self._start)

    def _start(self) -> None:
        self._timer = None
        # It is no work of the caller whose lease was the first.
        self._task = asyncio.create_task(self._renew_all(), context=Context())

    async def _renew_all(self) -> None:
        keys = list(self._held)
        try:
            held = await self._renew(keys)
        except GatewayError as error:
            log.warning("leases could not be renewed", extra={"error": error.message})
        else:
            for key in keys:
                if key not in held and (on_lost := self._held.pop(key, None)):
                    on_lost()
        finally:
            self._task = None
            self._schedule()


async def wait_briefly(event: asyncio.Event, timeout_s: float) -> None:
    """Wait until an event is set, or `timeout_s` seconds have passed."""
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
