"""SQL that is compiled once for all engines of a process.

Each test has an engine of its own, which would compile every statement anew: a tenth of the
time of tests that use a database. Processes that tests start are left as they are.
"""

from typing import Any
from unittest.mock import patch

import pytest
from sqlalchemy import Engine, create_engine
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.dialects.sqlite.aiosqlite import SQLiteDialect_aiosqlite
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.util import LRUCache

# More than the services have.
_MAX_STATEMENTS = 5_000


class _OfOneKind:
    """A dialect that is equal to every other of its class, as a part of the key of a statement."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


class SqliteDialect(_OfOneKind, SQLiteDialect_aiosqlite):
    supports_statement_cache = True


class SqliteDialectOfThreads(_OfOneKind, SQLiteDialect_pysqlite):
    supports_statement_cache = True


class PostgreSQLDialect(_OfOneKind, PGDialect_asyncpg):
    supports_statement_cache = True


@pytest.fixture(scope="session", autouse=True)
def compiled_statements():
    """Have engines share the statements that they have compiled."""
    registry.register("sqlite.aiosqlite", __name__, SqliteDialect.__name__)
    registry.register("sqlite", __name__, SqliteDialectOfThreads.__name__)
    registry.register("postgresql.asyncpg", __name__, PostgreSQLDialect.__name__)
    compiled: LRUCache[Any, Any] = LRUCache(_MAX_STATEMENTS)

    def create(*address: Any, execution_options: Any = None, **options: Any) -> AsyncEngine:
        execution_options = {**(execution_options or {}), "compiled_cache": compiled}
        return create_async_engine(*address, execution_options=execution_options, **options)

    def create_in_threads(*address: Any, **options: Any) -> Engine:
        return create_engine(*address, execution_options={"compiled_cache": compiled}, **options)

    with (
        patch("services.common.storage.database.create_async_engine", create),
        patch("services.common.storage.postgresql.create_async_engine", create),
        patch("services.common.storage.sqlite_threads.create_engine", create_in_threads),
    ):
        yield
