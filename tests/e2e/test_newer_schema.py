"""Workers beside a database that a newer version has taken further: they serve on."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import asyncpg
import pytest

from tests.databases import PostgreSQL, postgresql_server
from tests.e2e.users import User
from tests.gateway_in_process import running_gateway

NEW_COLUMN = "ALTER TABLE {} ADD COLUMN of_tomorrow TEXT"
SQLITE_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'"
# A partition gets its columns from its table.
POSTGRESQL_TABLES = (
    "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition "
    "AND relnamespace = 'public'::regnamespace"
)
TOMORROW = (
    "CREATE TABLE table_of_tomorrow (id TEXT PRIMARY KEY)",
    "UPDATE alembic_version SET version_num = '9999'",
)


@pytest.fixture(params=["sqlite", "postgresql"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[PostgreSQL | None]:
    if request.param == "sqlite":
        yield None
        return
    starting = postgresql_server()
    yield await asyncio.to_thread(starting.__enter__)
    await asyncio.to_thread(starting.__exit__, None, None, None)


def add_to_sqlite(file: Path) -> int:
    connection = sqlite3.connect(file, timeout=60, isolation_level=None)
    tables = [name for (name,) in connection.execute(SQLITE_TABLES)]
    connection.execute("BEGIN IMMEDIATE")
    for statement in (*map(NEW_COLUMN.format, tables), *TOMORROW):
        connection.execute(statement)
    connection.execute("COMMIT")
    connection.close()
    return len(tables)


async def add_to_postgresql(url: str) -> int:
    connection = await asyncpg.connect(url)
    tables = [row[0] for row in await connection.fetch(POSTGRESQL_TABLES)]
    # Each in a transaction of its own: one that held several tables could be in a deadlock with
    # what the gateway does by itself, and be the one that PostgreSQL ends.
    for statement in (*map(NEW_COLUMN.format, tables), *TOMORROW):
        await connection.execute(statement)
    await connection.close()
    return len(tables)


async def test_workers_serve_on_beside_a_newer_schema(
    tmp_path: Path, server: PostgreSQL | None
) -> None:
    storage = {"data_dir": str(tmp_path), "database_url": server.url if server else ""}
    async with (
        running_gateway(tmp_path, storage=storage) as gateway,
        aiohttp.ClientSession() as http,
    ):
        user = User(http, gateway.url, gateway.key)
        document = await user.create_document()
        session = await user.open_document(document)

        async def all_is_served(text: str) -> None:
            uploaded = await user.upload(text.encode())
            assert uploaded.status == 200, uploaded
            file_id = uploaded.body["id"]
            assert await user.content(file_id) == text.encode()
            assert (await user.files()).status == 200
            assert (await user.delete_file(file_id)).status == 200
            assert (await user.insert(session, text)).status == 200
            answer = await user.chat(text, memory_id="talk")
            assert answer.status == 200, answer
            stored = await user.response(text)
            assert stored.status == 200, stored

        await all_is_served("before")
        if server:
            tables = await add_to_postgresql(server.url)
        else:
            # In a thread: a transaction of the gateway, in this very loop, may have to end first.
            tables = await asyncio.to_thread(add_to_sqlite, tmp_path / "gateway.db")
        assert tables > 10
        await all_is_served("after")
        assert await user.read(session) == ["after", "before"]
        assert await user.turns("talk") == ["before", "after"]
