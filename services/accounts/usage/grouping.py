"""Shared parts of usage reports: filters, names of groups, and pages."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Column, ColumnElement, Table, select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.accounts.v1 import usage_pb2
from gateway.accounts.v1.usage_pb2 import UsageFilter, UsageGrouping
from services.accounts.tables import api_keys, teams, users
from services.common.errors import invalid
from services.common.storage import page_tokens

MAX_PAGE_SIZE = 1_000
# Fields of filters on labels.
OF_LABELS = ("tag", "end_user")

_NAMES: Mapping[int, tuple[Column[Any], Column[Any]]] = {
    usage_pb2.USAGE_GROUPING_USER: (users.c.id, users.c.name),
    usage_pb2.USAGE_GROUPING_TEAM: (teams.c.id, teams.c.name),
    usage_pb2.USAGE_GROUPING_KEY: (api_keys.c.id, api_keys.c.prefix),
}


def check_page_size(page_size: int) -> None:
    """Check the size of a page.

    Raises:
        GatewayError: invalid, naming the field.
    """
    if not 1 <= page_size <= MAX_PAGE_SIZE:
        raise invalid("page_size", f"page_size: must be 1 to {MAX_PAGE_SIZE:,}")


def conditions_of(usage_filter: UsageFilter, table: Table) -> Sequence[ColumnElement[bool]]:
    """Return the SQL conditions of a filter, without those on labels.

    The table's columns have the names of its fields.
    """
    return [
        table.c[field.name] == value
        for field, value in usage_filter.ListFields()
        if field.name not in OF_LABELS
    ]


async def names_of(
    connection: AsyncConnection, grouping: UsageGrouping.ValueType, ids: Sequence[Any]
) -> Mapping[Any, str]:
    """Return the names of users or teams, or the prefixes of keys, by id."""
    if grouping not in _NAMES:
        return {}
    key, name = _NAMES[grouping]
    rows = await connection.execute(select(key, name).where(key.in_(ids)))
    return {row[0]: row[1] for row in rows}


def token_of(group: str) -> str:
    """Return the token of the page after a group."""
    return page_tokens.write_token(f"after:{group}")


def group_of_token(token: str) -> str:
    """Parse a page token; return the last group of the previous page.

    Raises:
        GatewayError: invalid, when the token is not valid.
    """
    text = page_tokens.read_text(token)
    if not text.startswith("after:"):
        raise page_tokens.invalid_token()
    return text.removeprefix("after:")
