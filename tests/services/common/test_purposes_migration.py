"""Files and their allowed purposes after the migration of a database."""

from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.settings import Storage
from services.common.storage import migrations
from services.common.storage.database import open_engine, reading, writing
from services.common.storage.migrations.runner import migrate

BEFORE = "0007"
INSERT = "INSERT INTO files VALUES (:id, 'ada', 'a.txt', :purpose, 1, 'text/plain', 5, 6, 'hash')"
OLD = ("assistants", "batch", "fine_tune")
NEW = ("vision", "user_data", "evals")


async def test_files_survive_and_take_more_purposes(empty_storage: Storage) -> None:
    engine = open_engine(empty_storage)
    async with writing(engine) as connection:
        await connection.run_sync(_to, BEFORE)
        await connection.execute(text("INSERT INTO file_usage VALUES ('ada', 3, 3)"))
    for purpose in OLD:
        await _add(engine, purpose)
    indexes = await _indexes(engine)
    with pytest.raises(DBAPIError):
        await _add(engine, "vision")
    await migrate(engine)
    assert await _indexes(engine) == indexes
    for purpose in NEW:
        await _add(engine, purpose)
    with pytest.raises(DBAPIError):
        await _add(engine, "other")
    assert await _purposes(engine) == {purpose: purpose for purpose in (*OLD, *NEW)}
    await engine.dispose()


def _config(connection: Connection) -> Config:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    return config


def _to(connection: Connection, step: str) -> None:
    command.upgrade(_config(connection), step)


async def _add(engine: AsyncEngine, purpose: str) -> None:
    async with writing(engine) as connection:
        await connection.execute(text(INSERT), {"id": purpose, "purpose": purpose})


async def _purposes(engine: AsyncEngine) -> dict[str, str]:
    async with reading(engine) as connection:
        file_rows = await connection.execute(text("SELECT id, purpose FROM files"))
        return {row.id: row.purpose for row in file_rows}


async def _indexes(engine: AsyncEngine) -> list[str]:
    query = {
        "sqlite": "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'files'",
        "postgresql": "SELECT indexdef FROM pg_indexes WHERE tablename = 'files'",
    }[engine.dialect.name]
    async with reading(engine) as connection:
        return sorted(sql for (sql,) in await connection.execute(text(query)) if sql)
