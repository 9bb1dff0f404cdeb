"""The list of all subjects that have limits in the database, with what is left of these."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, case, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.accounts.v1.admin_pb2 import LimitedSubject
from gateway.accounts.v1.limits_pb2 import LimitUsage
from services.accounts.limits.repository import limits_of_row
from services.accounts.limits.rules import ACCOUNTS, LABELS, NUMBERS, SubjectKind
from services.accounts.limits.tables import limits as table
from services.accounts.limits.usage import usage_of_limits
from services.accounts.tables import api_keys, teams, users
from services.common.clock import Clock
from services.common.labels import owner_of_end_user
from services.common.storage.database import reading
from services.common.storage.page_tokens import invalid_token

_KINDS = (*ACCOUNTS, *LABELS)
# Where the names of subjects are; those of tags and end users are beside their limits.
_NAMES: Mapping[SubjectKind, tuple[ColumnElement[str], ColumnElement[str]]] = {
    SubjectKind.KEY: (
        api_keys.c.id,
        case((api_keys.c.name != "", api_keys.c.name), else_=api_keys.c.prefix),
    ),
    SubjectKind.USER: (users.c.id, users.c.name),
    SubjectKind.TEAM: (teams.c.id, teams.c.name),
    SubjectKind.END_USERS: (users.c.id, users.c.name),
}

_Subject = tuple[SubjectKind, str]


class LimitedSubjects:
    """Reads the subjects that have limits in the database.

    Args:
        engine: the database.
        clock: the clock.
    """

    def __init__(self, engine: AsyncEngine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock

    async def page(self, page_size: int, token: str) -> tuple[Sequence[LimitedSubject], str]:
        """Return subjects by kind and id, and the token of the next page, "" on the last one.

        Raises:
            GatewayError: invalid_request, for a token that is none; unavailable, when the database
                does not answer.
        """
        query = (
            select(table)
            .where(table.c.subject_kind.in_(_KINDS), _has_limits(), *_after(token))
            .order_by(table.c.subject_kind, table.c.subject_id)
            .limit(page_size + 1)
        )
        async with reading(self._engine) as connection:
            rows = (await connection.execute(query)).all()
            page = rows[:page_size]
            names = await _names_of(connection, page)
            states = await self._states_of(connection, page)
        subjects = [_subject(row, names, states) for row in page]
        last = page[-1] if len(rows) > page_size else None
        return subjects, "" if last is None else f"{last.subject_kind}/{last.subject_id}"

    async def _states_of(
        self, connection: AsyncConnection, rows: Sequence[Row[Any]]
    ) -> Mapping[_Subject, Sequence[LimitUsage]]:
        """Return the states of the limits of rows; none for each end user, as they count apart."""
        counted = [row for row in rows if row.subject_kind != SubjectKind.END_USERS]
        limits = [
            limits_of_row(row).to_proto(SubjectKind(row.subject_kind), row.subject_id)
            for row in counted
        ]
        states: dict[_Subject, list[LimitUsage]] = {}
        for state in await usage_of_limits(connection, limits, self._clock.now_ms()):
            states.setdefault((SubjectKind.of_proto(state.kind), state.id), []).append(state)
        return states


def _has_limits() -> ColumnElement[bool]:
    """Return the SQL condition of rows with limits: those of the settings have rows without any."""
    return or_(
        *(table.c[name].is_not(None) for name in NUMBERS), table.c.allowed_models.is_not(None)
    )


def _after(token: str) -> Sequence[ColumnElement[bool]]:
    """Return the SQL conditions of the subjects after the last one of a page.

    Raises:
        GatewayError: invalid_request.
    """
    if not token:
        return []
    kind, separator, subject_id = token.partition("/")
    if not separator or kind not in _KINDS or not subject_id or "\0" in subject_id:
        raise invalid_token()
    return [
        or_(
            table.c.subject_kind > kind,
            and_(table.c.subject_kind == kind, table.c.subject_id > subject_id),
        )
    ]


async def _names_of(
    connection: AsyncConnection, rows: Sequence[Row[Any]]
) -> Mapping[_Subject, str]:
    """Return the names of the subjects of rows that still exist."""
    names: dict[_Subject, str] = {}
    for kind, (key, name) in _NAMES.items():
        ids = [row.subject_id for row in rows if row.subject_kind == kind]
        if ids:
            named = await connection.execute(select(key, name).where(key.in_(ids)))
            names |= {(kind, row[0]): row[1] for row in named}
    return names


def _subject(
    row: Row[Any], names: Mapping[_Subject, str], states: Mapping[_Subject, Sequence[LimitUsage]]
) -> LimitedSubject:
    """Return the message of a row; its id is the one that callers know."""
    kind = SubjectKind(row.subject_kind)
    name = row.subject_name or names.get((kind, row.subject_id), "")
    subject_id = row.subject_id
    if kind == SubjectKind.TAG:
        subject_id = name
    elif kind == SubjectKind.END_USER:
        subject_id = f"{owner_of_end_user(subject_id)}/{name}"
    usage = states.get((kind, row.subject_id), ())
    for state in usage:
        state.id = subject_id
    limits = limits_of_row(row).to_proto(kind, subject_id)
    return LimitedSubject(limits=limits, name=name, usage=usage)
