from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
from sqlalchemy import Column, Integer, MetaData, String, Table, exc, insert, select, update
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.settings import Storage
from services.common.storage.database import open_engine, reading, reading_once, writing

pets = Table("pets", MetaData(), Column("id", Integer, primary_key=True), Column("name", String(9)))


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[AsyncEngine]:
    opened = open_engine(Storage(data_dir=tmp_path))
    async with writing(opened) as connection:
        await connection.run_sync(pets.metadata.create_all)
    yield opened
    await opened.dispose()


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of what has been done in the threads of connections."""
    names: list[str] = []
    execute: Any = aiosqlite.Connection._execute

    async def counted(self: aiosqlite.Connection, work: Any, *args: Any, **kwargs: Any) -> Any:
        names.append(work.__name__)
        return await execute(self, work, *args, **kwargs)

    monkeypatch.setattr(aiosqlite.Connection, "_execute", counted)
    return names


async def test_statement_visits_the_thread_once(engine: AsyncEngine, visits: list[str]) -> None:
    async with writing(engine) as connection:
        visits.clear()
        await connection.execute(insert(pets), {"id": 1, "name": "Ada"})
        await connection.execute(insert(pets), [{"id": 2, "name": "Bo"}, {"id": 3, "name": "Cy"}])
        await connection.execute(update(pets).values(name="Di").returning(pets.c.id))
        await connection.execute(select(pets))
        assert len(visits) == 4


async def test_rows_and_counts_are_those_of_the_statement(engine: AsyncEngine) -> None:
    async with writing(engine) as connection:
        made = await connection.execute(insert(pets).values(name="Ada"))
        assert made.inserted_primary_key == (1,)
        await connection.execute(insert(pets), [{"id": 2, "name": "Bo"}, {"id": 3, "name": "Cy"}])
        changed = await connection.execute(update(pets).where(pets.c.id > 1).values(name="Di"))
        assert changed.rowcount == 2
        returned = await connection.execute(update(pets).values(name="Ed").returning(pets.c.id))
        assert sorted(returned.scalars()) == [1, 2, 3]
    async with reading(engine) as connection:
        rows = await connection.execute(select(pets).order_by(pets.c.id))
        assert list(rows.keys()) == ["id", "name"]
        assert rows.all() == [(1, "Ed"), (2, "Ed"), (3, "Ed")]
        assert (await connection.execute(select(pets).where(pets.c.id > 3))).all() == []


async def test_connection_works_after_a_refused_statement(engine: AsyncEngine) -> None:
    async with writing(engine) as connection:
        await connection.execute(insert(pets), {"id": 1, "name": "Ada"})
        with pytest.raises(exc.IntegrityError):
            await connection.execute(insert(pets), [{"id": 2, "name": "Bo"}, {"id": 1, "name": ""}])
        assert (await connection.execute(select(pets.c.name))).scalars().all() == ["Ada", "Bo"]


async def test_a_read_begins_with_its_first_statement(
    engine: AsyncEngine, visits: list[str]
) -> None:
    async with reading(engine) as connection:
        visits.clear()
        assert (await connection.execute(select(pets))).all() == []
        assert len(visits) == 1
        async with writing(engine) as other:
            await other.execute(insert(pets), {"id": 1, "name": "Ada"})
        assert (await connection.execute(select(pets))).all() == []
    async with reading(engine) as connection:
        assert len((await connection.execute(select(pets))).all()) == 1


async def test_a_read_without_statements_changes_no_later_one(engine: AsyncEngine) -> None:
    async with reading(engine) as connection:
        await connection.begin()
    async with reading_once(engine) as connection:
        assert (await connection.execute(select(pets))).all() == []
    async with reading(engine) as connection:
        raw: Any = await connection.get_raw_connection()
        assert not raw.driver_connection.in_transaction
