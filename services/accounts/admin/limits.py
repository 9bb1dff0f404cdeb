"""Administration of the limits of keys, users, teams, tags and end users in the database."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import NamedTuple

from sqlalchemy import Table, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.accounts.v1.limits_pb2 import LimitUsage, Measure
from gateway.errors.v1 import errors_pb2
from services.accounts.admin.audit import COMMAND_LINE, Actor, Record, Subject, record
from services.accounts.admin.model_groups import check_groups
from services.accounts.limits.corrections import Budget
from services.accounts.limits.earlier_spend import SubjectLabel, add_earlier_spend
from services.accounts.limits.repository import read_limits, write_limits
from services.accounts.limits.rules import SubjectKind, UsageLimits, check_period_start
from services.accounts.limits.usage import usage_of_limits
from services.accounts.names import is_id
from services.accounts.tables import api_keys, teams, users
from services.common import ids
from services.common.clock import Clock
from services.common.errors import GatewayError, invalid
from services.common.labels import (
    END_USER,
    bounded_value,
    end_user_subject,
    is_tag_key,
    owner_of_end_user,
    tag_subject,
)
from services.common.limit_windows import DAY_MS
from services.common.storage.database import reading, writing_alone

_TABLES: Mapping[SubjectKind, Table] = {
    SubjectKind.KEY: api_keys,
    SubjectKind.USER: users,
    SubjectKind.TEAM: teams,
    # Those of a user.
    SubjectKind.END_USER: users,
    SubjectKind.END_USERS: users,
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
            subject = await _find_subject(connection, kind, subject_id)
            return await read_limits(connection, kind, subject.id) or UsageLimits()

    async def get_with_usage(
        self, kind: SubjectKind, subject_id: str
    ) -> tuple[UsageLimits, Sequence[LimitUsage]]:
        """Return the limits of a subject, and the state of each limit on a number."""
        async with reading(self._engine) as connection:
            subject = await _find_subject(connection, kind, subject_id)
            own = await read_limits(connection, kind, subject.id)
            counted = own
            if kind == SubjectKind.END_USERS:
                counted = None  # each end user is counted apart
            elif kind == SubjectKind.END_USER and own is None:
                owner_id = owner_of_end_user(subject.id)
                counted = await read_limits(connection, SubjectKind.END_USERS, owner_id)
            usage = await usage_of_limits(
                connection,
                [] if counted is None else [counted.to_proto(kind, subject.id)],
                self._clock.now_ms(),
            )
        for state in usage:
            state.id = subject_id
        return own or UsageLimits(), usage

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
        if kind == SubjectKind.END_USERS and limits.soft_limit_percent is not None:
            name = "soft_limit_percent"
            raise invalid(name, f"{name}: is for a single end user, not for all of a user")
        async with writing_alone(self._engine) as connection:
            subject = await _find_subject(connection, kind, subject_id)
            await check_groups(connection, limits.allowed_model_groups)
            before = await read_limits(connection, kind, subject.id)
            await write_limits(connection, kind, subject.id, limits, now_ms, subject.name)
            if kind != SubjectKind.END_USERS:
                await add_earlier_spend(connection, kind, subject.id, limits, now_ms, subject.label)
            await record(
                connection,
                self._clock,
                self._new_id,
                actor,
                "limits.set" if limits else "limits.clear",
                Subject(kind.value, subject.id),
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
        if kind == SubjectKind.END_USERS:
            raise invalid("kind", "kind: must be a single end user, whose spending is counted")
        async with writing_alone(self._engine) as connection:
            subject = await _find_subject(connection, kind, subject_id)
            before = await Budget.lock(connection, kind, subject.id, measure, now_ms)
            await change(before)
            after = await Budget.lock(connection, kind, subject.id, measure, now_ms)
            await record(
                connection,
                self._clock,
                self._new_id,
                actor,
                f"budget.{action}",
                Subject(kind.value, subject.id),
                before=_budget_record(before.usage),
                after=_budget_record(after.usage),
            )
        after.usage.id = subject_id
        return after.usage


def _budget_record(usage: LimitUsage) -> Record:
    name = Measure.Name(usage.measure).removeprefix("MEASURE_").lower()
    return {"budget": name, "limit_pusd": usage.limit, "spent_pusd": usage.used}


class _LimitSubject(NamedTuple):
    """A subject of limits.

    Attributes:
        id: its id in the tables.
        name: of a tag its key and value, of an end user its id; else None.
        label: the label of a tag or an end user; else None.
    """

    id: str
    name: str | None = None
    label: SubjectLabel | None = None


async def _find_subject(
    connection: AsyncConnection, kind: SubjectKind, subject_id: str
) -> _LimitSubject:
    """Return a subject of requests; see `SubjectKind` of `limits.proto` for its id.

    Raises:
        GatewayError: not_found; invalid_request, when the id is that of no label.
    """
    if kind == SubjectKind.TAG:
        key, separator, value = subject_id.partition("=")
        if not (separator and value and is_tag_key(key)):
            raise invalid("id", "id: must be the key and the value of a tag, such as project=alpha")
        label = SubjectLabel(key, bounded_value(value))
        return _LimitSubject(tag_subject(key, label.value), f"{key}={label.value}", label)
    owner_id, _, end_user = subject_id.partition("/")
    table = _TABLES[kind]
    exists = is_id(owner_id) and await connection.scalar(
        select(table.c.id).where(table.c.id == owner_id)
    )
    if not exists or bool(end_user) != (kind == SubjectKind.END_USER):
        owner = "user" if table is users else kind.value
        raise GatewayError(errors_pb2.REASON_NOT_FOUND, f"id: no such {owner}", param="id")
    if not end_user:
        return _LimitSubject(subject_id)
    label = SubjectLabel(END_USER, bounded_value(end_user), owner_id)
    return _LimitSubject(end_user_subject(owner_id, label.value), label.value, label)


def _to_record(limits: UsageLimits | None) -> Record | None:
    """Return the set limits, or None without limits."""
    if not limits:
        return None
    return {name: value for name, value in asdict(limits).items() if value not in (None, ())}
