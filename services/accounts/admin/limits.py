"""Administration of the limits of keys, users and teams in the database."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace

from sqlalchemy import Table, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.accounts.v1.limits_pb2 import LimitUsage, Measure
from gateway.errors.v1 import errors_pb2
from services.accounts.admin.audit import COMMAND_LINE, Actor, Record, Subject, record
from services.accounts.admin.model_groups import check_groups
from services.accounts.limits.corrections import Budget
from services.accounts.limits.earlier_spend import add_earlier_spend
from services.accounts.limits.repository import read_limits, write_limits
from services.accounts.limits.rules import SubjectKind, UsageLimits, check_period_start
from services.accounts.limits.usage import usage_of_limits
from services.accounts.names import is_id
from services.accounts.tables import api_keys, teams, users
from services.common import ids
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.limit_windows import DAY_MS
from services.common.storage.database import reading, writing_alone

_TABLES: Mapping[SubjectKind, Table] = {
    SubjectKind.KEY: api_keys,
    SubjectKind.USER: users,
    SubjectKind.TEAM: teams,
}


class LimitAdministration:
    """Administration of limits in the database.

    Every method raises `not_found` when there is no such subject, and `unavailable` when the
    database does not answer.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock | None = None,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._engine = engine
        self._clock = clock or Clock()
        self._new_id = new_id

    async def get(self, kind: SubjectKind, subject_id: str) -> UsageLimits:
        """Return the limits of a subject; empty limits if it has none."""
        async with reading(self._engine) as connection:
            await _check_subject(connection, kind, subject_id)
            return await read_limits(connection, kind, subject_id) or UsageLimits()

    async def get_with_usage(
        self, kind: SubjectKind, subject_id: str
    ) -> tuple[UsageLimits, Sequence[LimitUsage]]:
        """Return the limits of a subject, and the state of each limit on a number."""
        async with reading(self._engine) as connection:
            await _check_subject(connection, kind, subject_id)
            limits = await read_limits(connection, kind, subject_id) or UsageLimits()
            subject_limits = [limits.to_proto(kind, subject_id)]
            return limits, await usage_of_limits(connection, subject_limits, self._clock.now_ms())

    async def set(
        self, kind: SubjectKind, subject_id: str, limits: UsageLimits, actor: Actor = COMMAND_LINE
    ) -> UsageLimits:
        """Replace the limits of a subject, and return them; empty limits remove them."""
        now_ms = self._clock.now_ms()
        today = now_ms // DAY_MS
        check_period_start(limits, today)
        if limits.spend_per_period_pusd is not None and limits.period_start_day is None:
            limits = replace(limits, period_start_day=today)
        if limits.allowed_model_groups and limits.allowed_models is None:
            limits = replace(limits, allowed_models=())
        async with writing_alone(self._engine) as connection:
            await _check_subject(connection, kind, subject_id)
            await check_groups(connection, limits.allowed_model_groups)
            before = await read_limits(connection, kind, subject_id)
            await write_limits(connection, kind, subject_id, limits, now_ms)
            await add_earlier_spend(connection, kind, subject_id, limits, now_ms)
            await record(
                connection,
                self._clock,
                self._new_id,
                actor,
                "limits.set" if limits else "limits.clear",
                Subject(kind.value, subject_id),
                before=_to_record(before),
                after=_to_record(limits),
            )
        return limits

    async def reset_budget(
        self,
        kind: SubjectKind,
        subject_id: str,
        measure: Measure.ValueType,
        actor: Actor = COMMAND_LINE,
    ) -> LimitUsage:
        """Count the spending of a budget from 0 on; return its state.

        Raises:
            GatewayError: invalid_request, when there is no such budget.
        """
        return await self._correct("reset", kind, subject_id, measure, Budget.reset, actor)

    async def top_up_budget(
        self,
        kind: SubjectKind,
        subject_id: str,
        measure: Measure.ValueType,
        amount: int,
        actor: Actor = COMMAND_LINE,
    ) -> LimitUsage:
        """Add an amount to a budget for the rest of its window; return its state.

        Raises:
            GatewayError: invalid_request, when there is no such budget, or the amount is invalid.
        """

        async def add(budget: Budget) -> None:
            await budget.top_up(amount)

        return await self._correct("top_up", kind, subject_id, measure, add, actor)

    async def _correct(
        self,
        action: str,
        kind: SubjectKind,
        subject_id: str,
        measure: Measure.ValueType,
        change: Callable[[Budget], Awaitable[None]],
        actor: Actor,
    ) -> LimitUsage:
        now_ms = self._clock.now_ms()
        async with writing_alone(self._engine) as connection:
            await _check_subject(connection, kind, subject_id)
            before = await Budget.lock(connection, kind, subject_id, measure, now_ms)
            await change(before)
            after = await Budget.lock(connection, kind, subject_id, measure, now_ms)
            await record(
                connection,
                self._clock,
                self._new_id,
                actor,
                f"budget.{action}",
                Subject(kind.value, subject_id),
                before=_budget_record(before.usage),
                after=_budget_record(after.usage),
            )
        return after.usage


def _budget_record(usage: LimitUsage) -> Record:
    name = Measure.Name(usage.measure).removeprefix("MEASURE_").lower()
    return {"budget": name, "limit_pusd": usage.limit, "spent_pusd": usage.used}


async def _check_subject(connection: AsyncConnection, kind: SubjectKind, subject_id: str) -> None:
    table = _TABLES[kind]
    exists = is_id(subject_id) and await connection.scalar(
        select(table.c.id).where(table.c.id == subject_id)
    )
    if not exists:
        raise GatewayError(errors_pb2.REASON_NOT_FOUND, f"id: no such {kind.value}", param="id")


def _to_record(limits: UsageLimits | None) -> Record | None:
    """Return the set limits, or None without limits."""
    if not limits:
        return None
    return {name: value for name, value in asdict(limits).items() if value not in (None, ())}
