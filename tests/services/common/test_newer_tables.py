"""Starts on a database that a newer version has taken further.

A version starts if no step has taken away what it uses, and refuses otherwise.
"""

import logging
from collections.abc import Mapping

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.settings import Storage
from services.common.storage import migrations
from services.common.storage.database import open_engine, reading, writing, writing_alone
from services.common.storage.migrations import HEAD, OLDEST
from services.common.storage.migrations.runner import migrate, upgrade

NEWER = "UPDATE alembic_version SET version_num = '9999', oldest_step = :oldest"


async def record(engine: AsyncEngine) -> Mapping[str, object]:
    async with reading(engine) as connection:
        return dict(
            (await connection.execute(text("SELECT * FROM alembic_version"))).mappings().one()
        )


async def taken_further(storage: Storage, oldest: str | None) -> AsyncEngine:
    engine = open_engine(storage)
    await migrate(engine)
    async with writing(engine) as connection:
        await connection.execute(text(NEWER), {"oldest": oldest})
    return engine


@pytest.mark.parametrize("oldest", [OLDEST, HEAD])
async def test_a_version_that_still_works_starts(
    empty_storage: Storage, oldest: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine = await taken_further(empty_storage, oldest)
    with caplog.at_level(logging.WARNING):
        await migrate(engine)
    [line] = [one for one in caplog.records if "newer version" in one.message]
    assert (line.__dict__["step"], line.__dict__["oldest"]) == ("9999", oldest)
    assert await record(engine) == {"version_num": "9999", "oldest_step": oldest}
    await engine.dispose()


@pytest.mark.parametrize(
    ("oldest", "says"), [("9998", "has step 9998"), (None, "that applied this step")]
)
async def test_a_version_that_is_too_old_refuses(
    empty_storage: Storage, oldest: str | None, says: str
) -> None:
    engine = await taken_further(empty_storage, oldest)
    with pytest.raises(
        GatewayError, match="step 9999, which is not compatible with this version"
    ) as raised:
        await migrate(engine)
    assert raised.value.reason == errors_pb2.REASON_UNAVAILABLE
    assert says in raised.value.message
    assert await record(engine) == {"version_num": "9999", "oldest_step": oldest}
    await engine.dispose()


async def test_tables_of_another_program_are_refused(empty_storage: Storage) -> None:
    engine = open_engine(empty_storage)
    async with writing(engine) as connection:
        await connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32))"))
        await connection.execute(text("INSERT INTO alembic_version VALUES ('ae1027a6acf')"))
    with pytest.raises(GatewayError, match="step ae1027a6acf"):
        await migrate(engine)
    await engine.dispose()


@pytest.mark.parametrize("by_steps", [True, False])
async def test_migrations_write_the_oldest_step(empty_storage: Storage, by_steps: bool) -> None:
    engine = open_engine(empty_storage)
    if by_steps:
        async with writing_alone(engine) as connection:
            await connection.run_sync(upgrade)
    await migrate(engine)
    assert await record(engine) == {"version_num": HEAD, "oldest_step": OLDEST}
    await engine.dispose()


async def test_a_migration_changes_the_oldest_step(
    empty_storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine(empty_storage)
    await migrate(engine)
    monkeypatch.setattr(migrations.record, "OLDEST", "0012")
    async with writing_alone(engine) as connection:
        await connection.run_sync(upgrade)
    assert (await record(engine))["oldest_step"] == "0012"
    await engine.dispose()
