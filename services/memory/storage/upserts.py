"""Inserts that tolerate rows that are there already."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Table
from sqlalchemy.ext.asyncio import AsyncConnection

from services.common.database import insert_into


async def insert_if_absent(
    connection: AsyncConnection, table: Table, values: Mapping[str, Any]
) -> None:
    """Insert a row unless it would break a unique constraint of its table."""
    statement = insert_into(connection, table).values(values)
    await connection.execute(statement.on_conflict_do_nothing())
