"""Leases of workers on allowances, in the database.

A row of `allowances` is the amount that one worker holds of an allowance: its usage and its
reserve. Claims state this sum, not changes of it, so that the next claim corrects one whose
response was lost. During a claim the row of `limits` is locked: claims on a subject are serialized.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry
from sqlalchemy import RowMapping, bindparam, case, delete, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.accounts.limits.arithmetic import UNLIMITED, Granted, grant
from services.accounts.limits.rules import SubjectKind
from services.accounts.limits.soft_limits import ReachedSoftLimit, SoftLimits, reached
from services.accounts.limits.tables import allowances as table
from services.accounts.limits.tables import limits
from services.common.clock import Clock, ExpiryClock
from services.common.labels import owner_of_end_user
from services.common.storage.database import execute_many, insert_into, write
from services.common.storage.key_lists import KeyList

PER_PERIOD = "spend_per_period_pusd"
# Holder of usage that no worker holds any more: the sum of workers that closed the allowance.
SHARED = ""
# Holders of the corrections of a budget in a window, as negative amounts: what had been spent when
# it was reset, the time of which is in `reserved_until_ms`, and what has been added to it.
RESET = "reset"
TOP_UP = "top_up"
# Time after the end of a row until it is deleted; the clocks of all machines must be past the end.
_KEPT_MS = 120_000
_PURGE_EVERY_S = 60.0
_PURGED_AT_ONCE = 5_000
# Time within which all workers renew their leases after a clock was set.
_SETTLE_S = 30.0

_KEY = (table.c.subject_kind, table.c.subject_id, table.c.measure, table.c.window_start_ms)
_SUBJECT = (limits.c.subject_kind, limits.c.subject_id)
_SUBJECTS = KeyList(_SUBJECT, 2, "subjects")
_CLAIMS = KeyList(_KEY, 2, "claims")

# Built once: building these statements takes longer than executing them.
_LIMITS = (
    select(limits)
    .where(_SUBJECTS.condition)
    # All transactions lock in this order, which prevents deadlocks.
    .order_by(*_SUBJECT)
    .with_for_update()
)
# The unspent part of a row, while its worker lives.
RESERVED = case((table.c.reserved_until_ms > bindparam("now_ms"), table.c.reserved), else_=0)
# What counts as held, and what has been added to the limit.
HELD = case((table.c.holder != TOP_UP, table.c.amount), else_=0)
ADDED = case((table.c.holder == TOP_UP, -table.c.amount), else_=0)
_HELD_BY_OTHERS = (
    select(*_KEY, func.sum(HELD), func.sum(RESERVED), func.sum(ADDED))
    .where(
        _CLAIMS.condition,
        table.c.holder != bindparam("claimant"),
        table.c.ends_at_ms > bindparam("now_ms"),
    )
    .group_by(*_KEY)
)
_CLOSE = delete(table).where(_CLAIMS.condition, table.c.holder == bindparam("claimant"))


# The columns of `_KEY` of one allowance.
AllowanceKey = tuple[str, str, str, int]


def allowance_key(
    kind: SubjectKind, subject_id: str, field: str, window_start_ms: int, period_days: int = 0
) -> AllowanceKey:
    """Return the key of an allowance.

    Periods of different lengths that begin at the same time are different allowances.

    Args:
        kind: kind of the subject.
        subject_id: id of the subject.
        field: the column of `limits` with the measure.
        window_start_ms: start of the window in Unix milliseconds.
        period_days: days of the measure's periods; 0 for one without an end.
    """
    measure = f"{field}.{period_days}" if field == PER_PERIOD else field
    return kind.value, subject_id, measure, window_start_ms


class AllowanceClaim(NamedTuple):
    """A worker's claim on an allowance; see `limits.proto`.

    Attributes:
        kind: kind of the subject.
        subject_id: id of the subject.
        measure: name of the column of `limits`.
        window_start_ms: start of the window in Unix milliseconds, or 0.
        ends_at_ms: end of the lease in Unix milliseconds.
        held_amount: usage and reserve of the worker.
        amount: amount needed in addition.
        min_amount: the smallest useful part of `amount`; less is not granted.
        prefetch_amount: amount requested in advance, in addition to `amount`.
        releases: whether the worker gives up the allowance.
        reserved_amount: the part of `held_amount` that is not spent yet.
        reserved_until_ms: until when it counts as reserved, in Unix milliseconds.
        overdraws: whether `min_amount` is granted if anything is left.
        period_days: days of the measure's periods; 0 for one without an end.
        limit: the limit of a subject whose limits are in the settings; else None.
    """

    kind: SubjectKind
    subject_id: str
    measure: str
    window_start_ms: int
    ends_at_ms: int
    held_amount: int
    amount: int = 0
    min_amount: int = 0
    prefetch_amount: int = 0
    releases: bool = False
    reserved_amount: int = 0
    reserved_until_ms: int = 0
    overdraws: bool = False
    period_days: int = 0
    limit: int | None = None

    @property
    def key(self) -> AllowanceKey:
        """The key of the allowance."""
        return allowance_key(
            self.kind, self.subject_id, self.measure, self.window_start_ms, self.period_days
        )


class _Others(NamedTuple):
    """What other workers hold of an allowance.

    Attributes:
        held: usage and reserves, without what was spent before the last reset.
        reserved: the part of `held` that is not spent yet.
        added: what has been added to the limit.
    """

    held: int
    reserved: int
    added: int


_NO_OTHERS = _Others(0, 0, 0)


class ClaimResult(NamedTuple):
    """The result of a claim.

    Attributes:
        granted: the granted and the remaining amount.
        limit: the current limit, or None without a limit.
        spent: what all workers hold without reservations.
    """

    granted: Granted
    limit: int | None
    spent: int


class _Upserts:
    """Upsert statements for `allowances` in one SQL dialect.

    Attributes:
        replacing: replaces the row of a worker.
        adding: adds the usage of a worker that releases an allowance to the row of `SHARED`.
    """

    def __init__(self, connection: AsyncConnection) -> None:
        inserted = insert_into(connection, table)
        key = [column.name for column in table.primary_key.columns]
        ends = {"ends_at_ms": inserted.excluded.ends_at_ms}
        reserved = {name: inserted.excluded[name] for name in ("reserved", "reserved_until_ms")}
        amount = inserted.excluded.amount
        self.replacing = inserted.on_conflict_do_update(
            index_elements=key, set_={"amount": amount, **ends, **reserved}
        )
        self.adding = inserted.on_conflict_do_update(
            index_elements=key, set_={"amount": table.c.amount + amount, **ends}
        )


class LeaseRepository:
    """Repository of the workers' leases."""

    def __init__(
        self, engine: AsyncEngine, clock: Clock, soft_limits: SoftLimits | None = None
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._soft_limits = soft_limits or SoftLimits(clock, CollectorRegistry())
        self._expiry = ExpiryClock(clock, _SETTLE_S)
        self._purged_at = clock.monotonic()
        self._upserts: _Upserts | None = None

    async def lease(self, holder: str, claims: Sequence[AllowanceClaim]) -> list[ClaimResult]:
        """Acquire, renew and give up leases of one worker; return the result of each claim.

        Args:
            holder: id of the worker.
            claims: claims on different allowances.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        # Not lasting: after a power failure, the next claims restore the rows.

        async def transact(
            connection: AsyncConnection,
        ) -> tuple[list[ClaimResult], list[ReachedSoftLimit]]:
            amounts = await _limits_of(connection, claims, self._clock.now_ms())
            amounts_of_others = await self._held_by_others(connection, holder, claims)
            leases = [
                _answer(
                    claim,
                    amounts.get(claim.key[:2], {}),
                    amounts_of_others.get(claim.key, _NO_OTHERS),
                )
                for claim in claims
            ]
            if self._upserts is None:
                self._upserts = _Upserts(connection)
            await _write(connection, self._upserts, holder, claims, leases)
            soft_limits = _reached(amounts, claims, leases)
            if soft_limits:
                await self._soft_limits.record(connection, amounts, soft_limits)
            return leases, soft_limits

        leases, soft_limits = await write(self._engine, transact, is_lasting=False)
        self._soft_limits.count(soft_limits)
        await self._purge()
        return leases

    async def _held_by_others(
        self, connection: AsyncConnection, holder: str, claims: Sequence[AllowanceClaim]
    ) -> dict[AllowanceKey, _Others]:
        """Return what other workers hold of the claimed allowances."""
        values = {
            **_CLAIMS.values([claim.key for claim in claims]),
            "claimant": holder,
            "now_ms": self._expiry.bounds_ms()[0],
        }
        rows = await connection.execute(_HELD_BY_OTHERS, values)
        return {
            (kind, subject_id, measure, start): _Others(int(held), int(reserved), int(added))
            for kind, subject_id, measure, start, held, reserved, added in rows
        }

    async def _purge(self) -> None:
        """Delete up to `_PURGED_AT_ONCE` rows of old windows, at most once in `_PURGE_EVERY_S`."""
        now = self._clock.monotonic()
        if now < self._purged_at + _PURGE_EVERY_S:
            return
        self._purged_at = now

        async def transact(connection: AsyncConnection) -> None:
            is_old = table.c.ends_at_ms < self._expiry.bounds_ms()[0] - _KEPT_MS
            key = tuple(table.primary_key.columns)
            old = select(*key).where(is_old).limit(_PURGED_AT_ONCE)
            await connection.execute(delete(table).where(is_old, tuple_(*key).in_(old)))

        await write(self._engine, transact, is_lasting=False)


async def _limits_of(
    connection: AsyncConnection, claims: Sequence[AllowanceClaim], now_ms: int
) -> dict[tuple[str, str], RowMapping]:
    """Lock and return the limits of all claimed subjects, by kind and id."""
    # Those of all end users of a user count for an end user without limits of its own.
    default_of = {
        claim.key[:2]: (SubjectKind.END_USERS.value, owner_of_end_user(claim.subject_id))
        for claim in claims
        if claim.kind == SubjectKind.END_USER
    }
    subjects = {claim.key[:2] for claim in claims}
    rows = await _locked_rows(connection, subjects.union(default_of.values()))
    missing = {claim.key[:2] for claim in claims if claim.limit is not None} - rows.keys()
    if missing:
        # The limits are in the settings; the rows only serialize the claims.
        added = [
            {"subject_kind": kind, "subject_id": subject_id, "updated_at_ms": now_ms}
            for kind, subject_id in sorted(missing)
        ]
        await connection.execute(
            insert_into(connection, limits).on_conflict_do_nothing().values(added)
        )
        rows |= await _locked_rows(connection, missing)
    for end_user, default in default_of.items():
        if end_user not in rows and default in rows:
            rows[end_user] = rows[default]
    return rows


async def _locked_rows(
    connection: AsyncConnection, subjects: Collection[tuple[str, str]]
) -> dict[tuple[str, str], RowMapping]:
    rows = await connection.execute(_LIMITS, _SUBJECTS.values(subjects))
    return {(row["subject_kind"], row["subject_id"]): row for row in rows.mappings()}


def _answer(claim: AllowanceClaim, amounts: Mapping[Any, Any], others: _Others) -> ClaimResult:
    limit = amounts.get(claim.measure) if claim.limit is None else claim.limit
    if limit is not None:
        limit += others.added
    free = UNLIMITED if limit is None else limit - others.held - claim.held_amount
    spent_amount = others.held - others.reserved + claim.held_amount - claim.reserved_amount
    if claim.releases:
        return ClaimResult(Granted(0, free), limit, spent_amount)
    granted = grant(
        free, claim.amount, claim.min_amount, claim.prefetch_amount, overdraws=claim.overdraws
    )
    return ClaimResult(granted, limit, spent_amount)


def _reached(
    rows: Mapping[tuple[str, str], RowMapping],
    claims: Sequence[AllowanceClaim],
    leases: Sequence[ClaimResult],
) -> list[ReachedSoftLimit]:
    """Return the soft limits that claims have reached, and that are not recorded yet."""
    reached_limits = []
    for claim, lease in zip(claims, leases, strict=True):
        row = rows.get(claim.key[:2])
        if row is not None and row["subject_kind"] != SubjectKind.END_USERS:
            window = claim.window_start_ms, claim.ends_at_ms
            if one := reached(row, claim.measure, window, lease.limit, lease.spent):
                reached_limits.append(one)
    return reached_limits


async def _write(
    connection: AsyncConnection,
    upserts: _Upserts,
    holder: str,
    claims: Sequence[AllowanceClaim],
    leases: Sequence[ClaimResult],
) -> None:
    """Write the amounts that the worker holds from now on."""
    held_rows = [
        _row(claim, holder, lease.granted.amount)
        for claim, lease in zip(claims, leases, strict=True)
        if not claim.releases
    ]
    if held_rows:
        await execute_many(connection, upserts.replacing, held_rows)
    releasing = [claim for claim in claims if claim.releases]
    if released_rows := [_row(claim, SHARED, 0) for claim in releasing if claim.held_amount]:
        await execute_many(connection, upserts.adding, released_rows)
    if releasing:
        values = {**_CLAIMS.values([claim.key for claim in releasing]), "claimant": holder}
        await connection.execute(_CLOSE, values)


def _row(claim: AllowanceClaim, holder: str, granted: int) -> dict[str, Any]:
    """Return the row of a holder after a claim."""
    if claim.releases:
        claim = claim._replace(reserved_amount=0)
    kind, subject_id, measure, window_start_ms = claim.key
    return {
        "subject_kind": kind,
        "subject_id": subject_id,
        "measure": measure,
        "window_start_ms": window_start_ms,
        "holder": holder,
        "amount": claim.held_amount + granted,
        "ends_at_ms": claim.ends_at_ms,
        # Of measures without reservations, what a worker holds counts as used.
        "reserved": claim.reserved_amount + granted if claim.overdraws else 0,
        "reserved_until_ms": claim.reserved_until_ms,
    }
