"""Repository of the entries of the request log."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, FromClause, Select, delete, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.requests.v1.requests_pb2 import LoggedRequest, RequestFilter
from services.accounts.requests.rows import folded, label_rows_of, message_of, row_of
from services.accounts.requests.tables import request_log, request_log_labels
from services.common.ids import LOGGED_REQUEST, time_prefix
from services.common.labels import END_USER, parse_tag
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
        label_rows = [row for request in requests for row in label_rows_of(request)]

        async def insert(connection: AsyncConnection) -> None:
            for table, of_table in ((request_log, rows), (request_log_labels, label_rows)):
                statement = insert_into(connection, table).on_conflict_do_nothing()
                await execute_many(connection, statement, of_table)

        await write(self._engine, insert, is_lasting=False)

    async def get(self, entry_id: str, user_id: str = "") -> LoggedRequest | None:
        """Return an entry, or None if there is none; of one user if there is a `user_id`.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        query = select(request_log).where(request_log.c.id == entry_id)
        if user_id:
            query = query.where(request_log.c.user_id == user_id)

        async def read_entry(connection: AsyncConnection) -> LoggedRequest | None:
            rows = [row._asdict() for row in await connection.execute(query)]
            return next(iter(await _messages_of(connection, rows)), None)

        return await read(self._engine, read_entry)

    async def page(
        self, request_filter: RequestFilter, page_size: int, before_id: str = ""
    ) -> RequestPage:
        """Return the newest entries, or those before an id.

        Raises:
            GatewayError: unavailable, when the database does not answer; invalid_request, for a
                tag without a key or a value.
        """
        labels = [request_log_labels.alias() for _ in _labels_of(request_filter)]
        # The entries of a label are in the order of its index.
        entry_id = labels[0].c.entry_id if labels else request_log.c.id
        scanned = (
            select(request_log)
            .where(
                *_range_of(request_filter, before_id, entry_id),
                *_labelled(labels, _labels_of(request_filter)),
            )
            .order_by(entry_id.desc())
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
        page = await _messages_of(connection, rows[:page_size])
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

        async def remove(connection: AsyncConnection) -> int:
            entry_ids = (await connection.scalars(oldest)).all()
            return await remove_entries(connection, entry_ids)

        return await write(self._engine, remove)

    async def oldest_of_newest(self, number: int) -> str:
        """Return the id of the oldest of the newest `number` entries, "" if there are fewer.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        query = select(request_log.c.id).order_by(request_log.c.id.desc())
        async with reading_once(self._engine) as connection:
            return (await connection.execute(query.offset(number - 1).limit(1))).scalar() or ""


async def remove_entries(connection: AsyncConnection, entry_ids: Sequence[str]) -> int:
    """Remove entries, with their labels; return the number removed."""
    for column in (request_log_labels.c.entry_id, request_log.c.id):
        removed = await connection.execute(delete(column.table).where(column.in_(entry_ids)))
    return removed.rowcount


async def _messages_of(
    connection: AsyncConnection, rows: Sequence[Mapping[str, Any]]
) -> Sequence[LoggedRequest]:
    """Return the entries of rows, with their labels."""
    labels: dict[str, list[tuple[str, str]]] = {row["id"]: [] for row in rows}
    if labels:
        of_entries = request_log_labels.c.entry_id.in_(labels)
        for row in await connection.execute(select(request_log_labels).where(of_entries)):
            labels[row.entry_id].append((row.label, row.value))
    return [message_of(row, labels[row["id"]]) for row in rows]


def _labels_of(request_filter: RequestFilter) -> Sequence[tuple[str, str]]:
    """Return the labels that entries must have.

    Raises:
        GatewayError: invalid_request.
    """
    end_user = request_filter.end_user
    return [
        *([(END_USER, end_user)] if end_user else ()),
        *([parse_tag(request_filter.tag)] if request_filter.tag else ()),
    ]


def _labelled(
    tables: Sequence[FromClause], labels: Sequence[tuple[str, str]]
) -> Iterator[ColumnElement[bool]]:
    """Yield the SQL conditions that join a table of labels for each label."""
    for table, (label, value) in zip(tables, labels, strict=True):
        yield table.c.entry_id == request_log.c.id
        yield table.c.label == label
        yield table.c.value == value


def _range_of(
    request_filter: RequestFilter, before_id: str, entry_id: ColumnElement[str]
) -> Sequence[ColumnElement[bool]]:
    """Return the SQL conditions that an index answers; `entry_id` is the column of ids."""
    conditions: list[ColumnElement[bool]] = [
        request_log.c[name] == value
        for name in _INDEXED
        if (value := getattr(request_filter, name))
    ]
    if before_id:
        conditions.append(entry_id < before_id)
    if request_filter.HasField("since_ms"):
        conditions.append(entry_id >= time_prefix(LOGGED_REQUEST, request_filter.since_ms))
    if request_filter.HasField("until_ms"):
        conditions.append(entry_id < time_prefix(LOGGED_REQUEST, request_filter.until_ms))
    return conditions


def _matching(request_filter: RequestFilter, columns: Any) -> Sequence[ColumnElement[bool]]:
    """Return the SQL conditions of the rest of a filter."""
    conditions: list[ColumnElement[bool]] = [
        columns[name] == value for name in _EQUAL if (value := getattr(request_filter, name))
    ]
    if model := request_filter.model:
        conditions.append(or_(columns.requested_model == model, columns.model == model))
    if request_filter.has_model:
        conditions.append(columns.requested_model != "")
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
