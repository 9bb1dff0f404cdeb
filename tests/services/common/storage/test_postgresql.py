"""Connections to PostgreSQL with and without prepared statements."""

from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from services.common.settings import SettingsError, Storage
from services.common.storage.database import open_engine, read, reading
from services.common.storage.database_errors import DatabaseError
from services.common.storage.postgresql import parse_address
from tests.databases import PostgreSQL
from tests.poolers import older, pooler


def test_an_url_can_do_without_prepared_statements() -> None:
    url = "postgresql://a:b@db/x"
    assert parse_address(f"{url}?sslmode=require") == (f"{url}?sslmode=require", True)
    assert parse_address(f"{url}?statement_cache_size=0") == (url, False)
    both = parse_address(f"{url}?sslmode=require&statement_cache_size=0&host=c")
    assert both == (f"{url}?sslmode=require&host=c", False)
    with pytest.raises(SettingsError, match="statement_cache_size can only be 0"):
        open_engine(Storage(database_url=f"{url}?statement_cache_size=100"))


@pytest.mark.parametrize(("option", "is_kept"), [("", True), ("&statement_cache_size=0", False)])
async def test_statements_have_names_only_where_they_are_kept(
    tmp_path: Path, postgresql: PostgreSQL, option: str, is_kept: bool
) -> None:
    async def prepared(connection: AsyncConnection) -> int:
        counted = "SELECT count(*) FROM pg_prepared_statements"
        return int((await connection.exec_driver_sql(counted)).scalar_one())

    engine = open_engine(Storage(data_dir=tmp_path, database_url=postgresql.url + option))
    count = await read(engine, prepared)
    await engine.dispose()
    assert (count > 0) == is_kept


@older
async def test_a_pooler_without_statements_is_named(tmp_path: Path, postgresql: PostgreSQL) -> None:
    async def select(connection: AsyncConnection) -> None:
        await connection.exec_driver_sql("SELECT 1")

    with pooler(postgresql, keeps_statements=False) as between:
        storage = Storage(data_dir=tmp_path, database_url=between.url)
        first, second = open_engine(storage), open_engine(storage)
        await read(first, select)
        # It has the connection to the server on which the statement was prepared.
        async with reading(second) as other:
            await select(other)
            with pytest.raises(DatabaseError) as failed:
                await read(first, select)
        await first.dispose()
        await second.dispose()
        assert "does not keep prepared statements" in failed.value.advice
        assert "max_prepared_statements" in failed.value.advice
