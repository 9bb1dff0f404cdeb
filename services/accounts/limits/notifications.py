"""Delivery of notifications about budgets to the webhook: at least once, with bounded attempts.

A notification is a row until the webhook has accepted it. Every process with the webhook delivers;
one that takes a row postpones it before it sends, so that others and a restart leave it alone until
then.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from prometheus_client import CollectorRegistry
from sqlalchemy import Table, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.accounts.limits.rules import SubjectKind
from services.accounts.limits.tables import limits
from services.accounts.limits.tables import notifications as table
from services.accounts.limits.webhook import body_of
from services.accounts.tables import api_keys, teams, users
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.process.metrics import Counter
from services.common.storage.database import reading_once, write
from services.common.storage.leased_rows import wait_briefly

# Seconds from an attempt to the next one; after the last attempt, a notification is dropped. The
# first pause is longer than a request may take.
PAUSES_S = (90, 300, 1_800, 7_200, 21_600, 43_200)
# Interval at which rows of stopped processes and further attempts are looked for.
_POLL_S = 30.0
_AT_ONCE = 100

_NAMED: Mapping[str, Table] = {
    SubjectKind.KEY: api_keys,
    SubjectKind.USER: users,
    SubjectKind.TEAM: teams,
}

log = logging.getLogger(__name__)


class Sender(Protocol):
    """Sends notifications; see `Webhook`."""

    async def send(self, message_id: str, body: bytes) -> str:
        """Send a notification; return "" if it was accepted, else why not."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class BudgetNotifier:
    """Delivers notifications.

    Args:
        engine: the database.
        clock: the clock.
        sender: sends them; None without a webhook.
        has_new: set when there is a new one.
        registry: registry of the metric.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock,
        sender: Sender | None,
        has_new: asyncio.Event,
        registry: CollectorRegistry,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._sender = sender
        self._replaced: list[Sender] = []
        self._has_new = has_new
        self._outcomes = Counter(
            "gateway_budget_notifications",
            "Requests to the webhook about budgets, by outcome: delivered, failed, dropped.",
            ("outcome",),
            registry=registry,
        )
        # Exported as 0 from the start, so that an alert sees its first increase.
        self._outcomes.labels("dropped")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Deliver in the background until `stop`."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop; a notification that is being sent is sent again later."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.use(None)
        await self._close_replaced()

    def use(self, sender: Sender | None) -> None:
        """Send by another sender from the next notification on, or not at all."""
        if self._sender is not None:
            self._replaced.append(self._sender)
        self._sender = sender
        self._has_new.set()

    async def _close_replaced(self) -> None:
        while self._replaced:
            await self._replaced.pop().close()

    async def deliver(self) -> None:
        """Send what is due, oldest first; end at the first failure.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        rows = await self._due()
        while rows:
            for row in rows:
                if row["attempts"] == len(PAUSES_S):
                    await self._drop(row, "the last attempt was interrupted")
                elif await self._take(row) and not await self._send(row):
                    return
            rows = await self._due() if len(rows) == _AT_ONCE else []

    async def _run(self) -> None:
        while True:
            self._has_new.clear()
            # None of them is sending now.
            await self._close_replaced()
            if self._sender is None:
                await self._has_new.wait()
                continue
            try:
                await self.deliver()
            except GatewayError as error:
                log.warning("no notifications about budgets", extra={"error": error.message})
            except Exception:
                log.exception("notifications about budgets failed")
            await wait_briefly(self._has_new, _POLL_S)

    async def _due(self) -> Sequence[Mapping[str, Any]]:
        query = (
            select(table)
            .where(table.c.next_attempt_at_ms <= self._clock.now_ms())
            .order_by(table.c.next_attempt_at_ms, table.c.id)
            .limit(_AT_ONCE)
        )
        async with reading_once(self._engine) as connection:
            return [row._asdict() for row in await connection.execute(query)]

    async def _take(self, row: Mapping[str, Any]) -> bool:
        """Postpone the next attempt; return False if another process has taken the row."""
        attempts = row["attempts"]
        taken = (
            update(table)
            .filter_by(id=row["id"], attempts=attempts)
            .values(
                attempts=attempts + 1,
                next_attempt_at_ms=self._clock.now_ms() + 1000 * PAUSES_S[attempts],
            )
        )
        result = await write(self._engine, lambda connection: connection.execute(taken))
        return bool(result.rowcount)

    async def _send(self, row: Mapping[str, Any]) -> bool:
        """Send a notification; return whether the webhook accepted it."""
        name = await self._name_of(row["subject_kind"], row["subject_id"])
        # The webhook may have been removed from the settings since.
        if (sender := self._sender) is None:
            return False
        failure = await sender.send(row["id"], body_of(row, name))
        if not failure:
            self._outcomes.labels("delivered").inc()
            await write(self._engine, lambda connection: _remove(connection, row["id"]))
            return True
        if row["attempts"] + 1 == len(PAUSES_S):
            await self._drop(row, failure)
        else:
            self._outcomes.labels("failed").inc()
            details = {"id": row["id"], "subject": row["subject_id"], "error": failure}
            log.warning("the webhook did not accept a notification", extra=details)
        return False

    async def _drop(self, row: Mapping[str, Any], failure: str) -> None:
        """Remove a notification that the webhook has not accepted in any attempt."""
        self._outcomes.labels("dropped").inc()
        details = {"id": row["id"], "subject": row["subject_id"], "error": failure}
        log.error("a notification was dropped after its last attempt", extra=details)
        await write(self._engine, lambda connection: _remove(connection, row["id"]))

    async def _name_of(self, kind: str, subject_id: str) -> str:
        """Return the name of a subject; "" if it has none, or has been deleted."""
        query = select(limits.c.subject_name).filter_by(subject_kind=kind, subject_id=subject_id)
        if (subjects := _NAMED.get(kind)) is not None:
            query = select(subjects.c.name).where(subjects.c.id == subject_id)
        async with reading_once(self._engine) as connection:
            return (await connection.execute(query)).scalar_one_or_none() or ""


async def _remove(connection: AsyncConnection, message_id: str) -> None:
    await connection.execute(delete(table).where(table.c.id == message_id))
