"""Repository of the limits of keys, users and teams."""

from collections.abc import Collection, Mapping, Sequence

import orjson
from sqlalchemy import Row, and_, delete, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.accounts.v1.limits_pb2 import SubjectLimits
from services.accounts.limits.rules import NUMBERS, SubjectKind, UsageLimits
from services.accounts.limits.tables import allowances, model_groups, notifications
from services.accounts.limits.tables import limits as table
from services.common.clock import Clock
from services.common.labels import end_user_prefix, end_user_subject, tag_subject
from services.common.storage.database import insert_into, reading_once, write

# The kind and the id of a subject.
_Subject = tuple[SubjectKind, str]


class LimitRepository:
    """Repository of limits; it does not check that a subject exists."""

    def __init__(self, engine: AsyncEngine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock

    async def get(self, kind: SubjectKind, subject_id: str) -> UsageLimits | None:
        """Return the limits of a subject, or None if it has none.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        async with reading_once(self._engine) as connection:
            return await read_limits(connection, kind, subject_id)

    async def set(self, kind: SubjectKind, subject_id: str, limits: UsageLimits) -> None:
        """Replace the limits of a subject.

        Workers apply them once their cached identity of a caller has expired, within
        `limits.identify_cache_s`.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """

        async def transact(connection: AsyncConnection) -> None:
            await write_limits(connection, kind, subject_id, limits, self._clock.now_ms())

        await write(self._engine, transact)

    async def of_caller(self, key_id: str, user_id: str, team_id: str) -> tuple[SubjectLimits, ...]:
        """Return the limits of a key, its user and the user's team, as far as they have any.

        Args:
            key_id: id of the key.
            user_id: id of the key's user.
            team_id: id of the user's team, or "".

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        subjects = (
            (SubjectKind.KEY, key_id),
            (SubjectKind.USER, user_id),
            (SubjectKind.TEAM, team_id),
        )
        limits = await self._find([subject for subject in subjects if subject[1]])
        return await self._messages({one: limits[one] for one in subjects if one in limits})

    async def of_labels(
        self, user_id: str, tags: Mapping[str, str], end_user: str
    ) -> tuple[SubjectLimits, ...]:
        """Return the limits of the labels of a user's request, as far as they have any.

        Args:
            user_id: id of the user.
            tags: the tags by key.
            end_user: the end user, or "".

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        subjects = [(SubjectKind.TAG, tag_subject(key, value)) for key, value in tags.items()]
        own = SubjectKind.END_USER, end_user_subject(user_id, end_user)
        default = SubjectKind.END_USERS, user_id
        stored = await self._find([*subjects, *((own, default) if end_user else ())])
        limits = {one: stored[one] for one in subjects if one in stored}
        if (of_end_user := stored.get(own) or stored.get(default)) is not None:
            limits[own] = of_end_user
        return await self._messages(limits)

    async def _find(self, subjects: Sequence[_Subject]) -> dict[_Subject, UsageLimits]:
        """Return the limits of subjects that have any."""
        of_subjects = (
            and_(table.c.subject_kind == kind.value, table.c.subject_id == subject_id)
            for kind, subject_id in subjects
        )
        async with reading_once(self._engine) as connection:
            rows = (await connection.execute(select(table).where(or_(*of_subjects)))).all()
        return {(SubjectKind(row.subject_kind), row.subject_id): limits_of_row(row) for row in rows}

    async def _messages(self, limits: Mapping[_Subject, UsageLimits]) -> tuple[SubjectLimits, ...]:
        """Return limits as messages, with the models of their groups."""
        names = {name for one in limits.values() for name in one.allowed_model_groups}
        models = await self._models_of(names) if names else {}
        return tuple(
            _expanded(one.to_proto(kind, subject_id), models)
            for (kind, subject_id), one in limits.items()
        )

    async def _models_of(self, names: Collection[str]) -> Mapping[str, Sequence[str]]:
        """Return the models of groups."""
        query = select(model_groups).where(model_groups.c.name.in_(names))
        async with reading_once(self._engine) as connection:
            return {row.name: orjson.loads(row.models) for row in await connection.execute(query)}


async def read_limits(
    connection: AsyncConnection, kind: SubjectKind, subject_id: str
) -> UsageLimits | None:
    """Return the limits of a subject, or None if it has none."""
    query = select(table).where(
        table.c.subject_kind == kind.value, table.c.subject_id == subject_id
    )
    row = (await connection.execute(query)).one_or_none()
    return None if row is None else limits_of_row(row)


async def write_limits(
    connection: AsyncConnection,
    kind: SubjectKind,
    subject_id: str,
    limits: UsageLimits,
    now_ms: int,
    name: str | None = None,
) -> None:
    """Replace the limits of a subject in the current transaction; empty limits are deleted.

    A tag and an end user have a name.
    """
    key = {"subject_kind": kind.value, "subject_id": subject_id}
    if not limits:
        await connection.execute(delete(table).filter_by(**key))
        return
    groups = limits.allowed_model_groups
    models = limits.allowed_models if limits.allowed_models is not None or not groups else ()
    values = {
        **{name: getattr(limits, name) for name in NUMBERS},
        "allowed_models": None if models is None else orjson.dumps(models).decode(),
        "allowed_model_groups": orjson.dumps(groups).decode() if groups else None,
        "updated_at_ms": now_ms,
        "subject_name": name,
    }
    statement = insert_into(connection, table).values(**key, **values)
    await connection.execute(statement.on_conflict_do_update(index_elements=list(key), set_=values))


async def delete_limits(
    connection: AsyncConnection, kind: SubjectKind, subject_ids: Sequence[str]
) -> None:
    """Delete the limits of subjects and what is stored of their use, in the current transaction."""
    for of_subjects in (table, allowances, notifications):
        await connection.execute(
            delete(of_subjects).where(
                of_subjects.c.subject_kind == kind.value,
                of_subjects.c.subject_id.in_(subject_ids),
            )
        )


async def delete_end_user_limits(connection: AsyncConnection, user_id: str) -> int:
    """Delete the limits of a user's end users and what is stored of their use.

    Returns:
        The number of rows.
    """
    prefix = end_user_prefix(user_id)
    query = select(table.c.subject_id).where(
        table.c.subject_kind == SubjectKind.END_USER.value,
        table.c.subject_id.startswith(prefix, autoescape=True),
    )
    subject_ids = [*(await connection.scalars(query)), user_id]
    kinds = [SubjectKind.END_USER.value, SubjectKind.END_USERS.value]
    removed = 0
    for limited in (table, notifications):
        theirs = limited.c.subject_kind.in_(kinds), limited.c.subject_id.in_(subject_ids)
        removed += (await connection.execute(delete(limited).where(*theirs))).rowcount
    # End users without limits of their own have allowances too.
    of_end_users = (
        allowances.c.subject_kind == SubjectKind.END_USER.value,
        allowances.c.subject_id.startswith(prefix, autoescape=True),
    )
    return removed + (await connection.execute(delete(allowances).where(*of_end_users))).rowcount


def limits_of_row(row: Row[tuple[object, ...]]) -> UsageLimits:
    """Return the limits in a row of their table."""
    models, groups = row.allowed_models, row.allowed_model_groups
    return UsageLimits(
        **{name: getattr(row, name) for name in NUMBERS},
        allowed_models=None if models is None else tuple(orjson.loads(models)),
        allowed_model_groups=() if groups is None else tuple(orjson.loads(groups)),
    )


def _expanded(limits: SubjectLimits, models: Mapping[str, Sequence[str]]) -> SubjectLimits:
    """Return limits with the models of their groups in place of the names of the groups."""
    if limits.allowed_model_groups:
        patterns = limits.allowed_models.patterns
        for name in limits.allowed_model_groups:
            patterns.extend(model for model in models.get(name, ()) if model not in patterns)
        limits.allowed_models.SetInParent()
        del limits.allowed_model_groups[:]
    return limits
