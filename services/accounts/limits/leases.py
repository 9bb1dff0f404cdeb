"""Leases of workers on what keys, users and teams may use, in the database.

A row of `allowances` is what one worker holds of an allowance: what it has used and what it keeps.
Claims state that sum, and not changes of it, so that a claim whose answer was lost is put right by
the next one. The row of `limits` is locked meanwhile: claims on a subject come one after another.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import RowMapping, bindparam, delete, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.accounts.limits.arithmetic import UNLIMITED, Granted, grant
from services.accounts.limits.rules import SubjectKind
from services.accounts.limits.tables import allowances as table
from services.accounts.limits.tables import limits
from services.common.clock import Clock
from services.common.database import execute_many, insert_into, writing

# Rows of nobody in particular: what workers that forgot an allowance have used of it.
SHARED = ""
# Rows are deleted so long after their end, when the clocks of all machines are past it.
_KEPT_MS = 120_000
_PURGE_EVERY_S = 60.0

_KEY = (table.c.subject_kind, table.c.subject_id, table.c.measure, table.c.window_start_ms)
_SUBJECT = (limits.c.subject_kind, limits.c.subject_id)

# Made once: to put these together takes longer than to run them.
_LIMITS = (
    select(limits)
    .where(tuple_(*_SUBJECT).in_(bindparam("subjects", expanding=True)))
    # In one order everywhere, so that two transactions never wait for each other.
    .order_by(*_SUBJECT)
    .with_for_update()
)
_OF_CLAIMS = tuple_(*_KEY).in_(bindparam("claims", expanding=True))
_HELD_BY_OTHERS = (
    select(*_KEY, func.sum(table.c.amount))
    .where(
        _OF_CLAIMS,
        table.c.holder != bindparam("claimant"),
        table.c.ends_at_ms > bindparam("now_ms"),
    )
    .group_by(*_KEY)
)
_CLOSE = delete(table).where(_OF_CLAIMS, table.c.holder == bindparam("claimant"))


class Claim(NamedTuple):
    """A worker's claim on an allowance; see `limits.proto`.

    Attributes:
        kind: of the subject.
        subject_id: the subject.
        measure: name of the column of `limits`.
        window_start_ms: when the window begins, or 0.
        ends_at_ms: when the lease ends.
        holding: what the worker has used and keeps.
        amount: what it needs beside that.
        least: the smallest part of `amount` that is of use.
        ahead: what it would like beside that.
        closes: whether it forgets the allowance.
    """

    kind: SubjectKind
    subject_id: str
    measure: str
    window_start_ms: int
    ends_at_ms: int
    holding: int
    amount: int = 0
    least: int = 0
    ahead: int = 0
    closes: bool = False

    @property
    def key(self) -> tuple[str, str, str, int]:
        """The columns that name the allowance."""
        return self.kind.value, self.subject_id, self.measure, self.window_start_ms


class Lease(NamedTuple):
    """The answer to a claim.

    Attributes:
        granted: what it is granted, and what is left.
        limit: the limit in force, or None where there is none.
    """

    granted: Granted
    limit: int | None


class _Upserts:
    """The statements that write rows of `allowances`, for one kind of database.

    Attributes:
        replacing: takes the row of a worker's claim in place of the one before.
        adding: adds what a worker leaves behind to the row of nobody.
    """

    def __init__(self, connection: AsyncConnection) -> None:
        inserted = insert_into(connection, table)
        key = [column.name for column in table.primary_key.columns]
        ends = {"ends_at_ms": inserted.excluded.ends_at_ms}
        amount = inserted.excluded.amount
        self.replacing = inserted.on_conflict_do_update(
            index_elements=key, set_={"amount": amount, **ends}
        )
        self.adding = inserted.on_conflict_do_update(
            index_elements=key, set_={"amount": table.c.amount + amount, **ends}
        )


class LeaseRepository:
    """What workers hold, in the database."""

    def __init__(self, engine: AsyncEngine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._purged_at = clock.monotonic()
        self._upserts: _Upserts | None = None

    async def lease(self, holder: str, claims: Sequence[Claim]) -> list[Lease]:
        """Take, renew and return leases of one worker; return what each claim is granted.

        Args:
            holder: the worker.
            claims: no two for one allowance.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        # After a power cut workers state what they hold with their next claims.
        async with writing(self._engine, is_lasting=False) as connection:
            amounts = await _limits_of(connection, claims)
            held = await self._held_by_others(connection, holder, claims)
            leases = [
                _answer(claim, amounts.get(claim.key[:2], {}), held.get(claim.key, 0))
                for claim in claims
            ]
            if self._upserts is None:
                self._upserts = _Upserts(connection)
            await _write(connection, self._upserts, holder, claims, leases)
        await self._purge()
        return leases

    async def _held_by_others(
        self, connection: AsyncConnection, holder: str, claims: Sequence[Claim]
    ) -> dict[tuple[str, str, str, int], int]:
        values = {
            "claims": [claim.key for claim in claims],
            "claimant": holder,
            "now_ms": self._clock.now_ms(),
        }
        rows = await connection.execute(_HELD_BY_OTHERS, values)
        return {
            (kind, one, measure, start): int(amount) for kind, one, measure, start, amount in rows
        }

    async def _purge(self) -> None:
        """Delete the rows of windows that ended long ago, now and then."""
        now = self._clock.monotonic()
        if now < self._purged_at + _PURGE_EVERY_S:
            return
        self._purged_at = now
        async with writing(self._engine, is_lasting=False) as connection:
            old = table.c.ends_at_ms < self._clock.now_ms() - _KEPT_MS
            await connection.execute(delete(table).where(old))


async def _limits_of(
    connection: AsyncConnection, claims: Sequence[Claim]
) -> dict[tuple[str, str], RowMapping]:
    """Return the limits of all subjects, by kind and id, and lock them."""
    subjects = list({claim.key[:2] for claim in claims})
    rows = await connection.execute(_LIMITS, {"subjects": subjects})
    return {(row["subject_kind"], row["subject_id"]): row for row in rows.mappings()}


def _answer(claim: Claim, amounts: Mapping[Any, Any], others: int) -> Lease:
    limit = amounts.get(claim.measure)
    free = UNLIMITED if limit is None else limit - others - claim.holding
    if claim.closes:
        return Lease(Granted(0, max(0, free)), limit)
    return Lease(grant(free, claim.amount, claim.least, claim.ahead), limit)


async def _write(
    connection: AsyncConnection,
    upserts: _Upserts,
    holder: str,
    claims: Sequence[Claim],
    leases: Sequence[Lease],
) -> None:
    """Write what the worker holds from now on."""
    held = [
        _row(claim, holder, claim.holding + lease.granted.amount)
        for claim, lease in zip(claims, leases, strict=True)
        if not claim.closes
    ]
    if held:
        await execute_many(connection, upserts.replacing, held)
    closing = [claim for claim in claims if claim.closes]
    if left := [_row(claim, SHARED, claim.holding) for claim in closing if claim.holding]:
        await execute_many(connection, upserts.adding, left)
    if closing:
        values = {"claims": [claim.key for claim in closing], "claimant": holder}
        await connection.execute(_CLOSE, values)


def _row(claim: Claim, holder: str, amount: int) -> dict[str, Any]:
    kind, subject_id, measure, window_start_ms = claim.key
    return {
        "subject_kind": kind,
        "subject_id": subject_id,
        "measure": measure,
        "window_start_ms": window_start_ms,
        "holder": holder,
        "amount": amount,
        "ends_at_ms": claim.ends_at_ms,
    }
