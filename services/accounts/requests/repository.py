"""Repository of the entries of the request log."""

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, delete, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.accounts.v1.requests_pb2 import LoggedRequest, RequestFilter
from services.accounts.requests.rows import folded, message_of, row_of
from services.accounts.requests.tables import request_log
from services.common.ids import LOGGED_REQUEST, time_prefix
from services.common.storage.database import execute_many, insert_into, read, reading_once, write

# Entries that a page looks at: a filter without an index reads all of them.
MAX_SCANNED = 10_000
# Fields of a filter that have an index, together with the id.
_INDEXED = ("user_id", "key_id", "request_id")
_EQUAL = ("team_id", "provider")


class RequestPage(NamedTuple):
    """A page of entries, newest first, and the token of the next page, "" on the last one."""

    requests: Sequence[LoggedRequest]
    next_token: str


class RequestRepository:
    """Repository of the entries.

    Args:
        engine: the database.
        max_scanned: entries that a page looks at.
    """

    def __init__(self, engine: AsyncEngine, max_scanned: int = MAX_SCANNED) -> None:
        self._engine = engine
        self._max_scanned = max_scanned

    async def add(
        self, requests: Sequence[LoggedRequest], texts: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Add entries; those that are stored already stay as they are.

        Args:
            requests: the entries.
            texts: the texts of their bodies, by id.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        rows = [row_of(request, texts.get(request.id, "")) for request in requests]

        async def insert(connection: AsyncConnection) -> None:
            statement = insert_into(connection, request_log).on_conflict_do_nothing()
            await execute_many(connection, statement, rows)

        await write(self._engine, insert, is_lasting=False)

    async def get(self, entry_id: str) -> LoggedRequest | None:
        """Return an entry, or None if there is none.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        query = select(request_log).where(request_log.c.id == entry_id)
        async with reading_once(self._engine) as connection:
            row = (await connection.execute(query)).one_or_none()
        return None if row is None else message_of(row._asdict())

    async def page(
        self, request_filter: RequestFilter, page_size: int, before_id: str = ""
    ) -> RequestPage:
        """Return the newest entries, or those before an id.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        scanned = (
            select(request_log)
            .where(*_range_of(request_filter, before_id))
            .order_by(request_log.c.id.desc())
            .limit(self._max_scanned)
        )
        return await read(
            self._engine, partial(self._read_page, request_filter, page_size, scanned)
        )

    async def _read_page(
        self,
        request_filter: RequestFilter,
        page_size: int,
        scanned: Select[Any],
        connection: AsyncConnection,
    ) -> RequestPage:
        columns = scanned.subquery()
        query = (
            select(columns)
            .where(*_matching(request_filter, columns.c))
            .order_by(columns.c.id.desc())
            .limit(page_size + 1)
        )
        rows = [row._asdict() for row in await connection.execute(query)]
        page = [message_of(row) for row in rows[:page_size]]
        if len(rows) > page_size:
            return RequestPage(page, page[-1].id)
        # The last entry that was looked at, if there may be others before it.
        ids = scanned.with_only_columns(request_log.c.id).subquery()
        last = select(ids).order_by(ids.c.id.desc()).offset(self._max_scanned - 1).limit(1)
        return RequestPage(page, (await connection.execute(last)).scalar() or "")

    async def remove_before(self, cutoff_id: str, at_most: int) -> int:
        """Remove up to `at_most` entries with smaller ids; return the number removed.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        old = select(request_log.c.id).where(request_log.c.id < cutoff_id)
        oldest = old.order_by(request_log.c.id).limit(at_most)
        removal = delete(request_log).where(request_log.c.id.in_(oldest))
        removed = await write(self._engine, lambda connection: connection.execute(removal))
        return removed.rowcount

    async def oldest_of_newest(self, number: int) -> str:
        """Return the id of the oldest of the newest `number` entries, "" if there are fewer.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        query = select(request_log.c.id).order_by(request_log.c.id.desc())
        async with reading_once(self._engine) as connection:
            return (await connection.execute(query.offset(number - 1).limit(1))).scalar() or ""


def _range_of(request_filter: RequestFilter, before_id: str) -> Sequence[ColumnElement[bool]]:
    """Return the SQL conditions that an index answers."""
    conditions: list[ColumnElement[bool]] = [
        request_log.c[name] == value
        for name in _INDEXED
        if (value := getattr(request_filter, name))
    ]
    if before_id:
        conditions.append(request_log.c.id < before_id)
    if request_filter.HasField("since_ms"):
        conditions.append(request_log.c.id >= time_prefix(LOGGED_REQUEST, request_filter.since_ms))
    if request_filter.HasField("until_ms"):
        conditions.append(request_log.c.id < time_prefix(LOGGED_REQUEST, request_filter.until_ms))
    return conditions


def _matching(request_filter: RequestFilter, columns: Any) -> Sequence[ColumnElement[bool]]:
    """Return the SQL conditions of the rest of a filter."""
    conditions: list[ColumnElement[bool]] = [
        columns[name] == value for name in _EQUAL if (value := getattr(request_filter, name))
    ]
    if model := request_filter.model:
        conditions.append(or_(columns.requested_model == model, columns.model == model))
    if request_filter.min_status:
        conditions.append(columns.status >= request_filter.min_status)
    if request_filter.max_status:
        conditions.append(columns.status <= request_filter.max_status)
    if request_filter.HasField("min_cost_pusd"):
        conditions.append(columns.cost_pusd >= request_filter.min_cost_pusd)
    if request_filter.HasField("max_cost_pusd"):
        conditions.append(columns.cost_pusd <= request_filter.max_cost_pusd)
    if text := folded(request_filter.text):
        conditions.append(columns.search_text.contains(text, autoescape=True))
    return conditions
