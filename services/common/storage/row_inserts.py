"""Insertion of many rows."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Dialect, Table, insert
from sqlalchemy.ext.asyncio import AsyncConnection

# SQLAlchemy blocks for 3 µs per row before it passes all rows to the driver.
_AT_ONCE = 1_000


async def insert_rows(
    connection: AsyncConnection, table: Table, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Insert rows that have a value for each column.

    PostgreSQL gets an array for each column: it takes a fifth of the work of a statement for each
    row, and one round trip.
    """
    for start in range(0, len(rows), _AT_ONCE):
        some = rows[start : start + _AT_ONCE]
        if connection.dialect.name == "postgresql":
            columns = tuple([row[name] for row in some] for name in table.columns.keys())
            await connection.exec_driver_sql(_of_arrays(table, connection.dialect), columns)
        else:
            await connection.execute(insert(table), some)


@cache
def _of_arrays(table: Table, dialect: Dialect) -> str:
    """Return the statement whose parameters are arrays of the values of all columns."""
    arrays = ", ".join(
        f"CAST(${number} AS {column.type.compile(dialect=dialect)}[])"
        for number, column in enumerate(table.columns, 1)
    )
    names = ", ".join(table.columns.keys())
    return f"INSERT INTO {table.name} ({names}) SELECT * FROM unnest({arrays})"
