"""Usage of documents and memories that are older than its counters."""

from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.settings import Storage
from services.common.storage import migrations
from services.common.storage.database import open_engine, reading, writing
from services.common.storage.migrations.runner import migrate

BEFORE = "0006"

ROWS = (
    "INSERT INTO users VALUES ('ada', 'ada', NULL, 'personal_pro', 0)",
    *(
        "INSERT INTO articles (id, creator_id, name, permission, created_at_ms, deleted_at_ms) "
        f"VALUES ('{number}', 'ada', 'x', 'private', 0, {deleted})"
        for number, deleted in ((1, "NULL"), (2, "NULL"), (3, "5"))
    ),
    *(
        "INSERT INTO article_operations VALUES "
        f"('{number}', {revision}, 'ada', 0, :content, :inverse)"
        for number, revision in ((1, 1), (1, 2), (3, 1))
    ),
    "INSERT INTO article_snapshots (article_id, revision, content) VALUES ('1', 1, :content)",
    "INSERT INTO memory_owners VALUES ('ada', 1)",
    "INSERT INTO memories VALUES ('m', 'ada', 'diary', 0, 0, 0, 1, 2, 0, 0)",
    "INSERT INTO memory_parts VALUES ('m', 0, 0, 2, 1, 0, false, NULL, :content)",
)


async def test_what_was_there_before_is_counted(empty_storage: Storage) -> None:
    engine = open_engine(empty_storage)
    async with writing(engine) as connection:
        await connection.run_sync(_upgrade)
        for row in ROWS:
            names = {"content": b"x" * 1000, "inverse": b"y" * 10}
            bound = {name: value for name, value in names.items() if f":{name}" in row}
            await connection.execute(text(row), bound)
    await migrate(engine)
    each = 1000 + 10 + 256
    assert await _rows(engine, "plan, documents, size_bytes, deleted_bytes FROM article_usage") == [
        ("personal_pro", 2, 2 * 1024 + 2 * each, 1024 + each)
    ]
    assert await _rows(engine, "id, size_bytes, charged_bytes FROM articles ORDER BY id") == [
        ("1", 1024 + 2 * each, 2 * each),
        ("2", 1024, 0),
        ("3", 1024 + each, each),
    ]
    assert await _rows(engine, "log_bytes FROM article_snapshots") == [(each,)]
    of_memory = 2 * 1000 + 2 * 64 + 512
    assert await _rows(engine, "size_bytes FROM memories") == [(of_memory,)]
    assert await _rows(engine, "size_bytes FROM memory_owners") == [(of_memory,)]
    await engine.dispose()


def _upgrade(connection: Connection) -> None:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    command.upgrade(config, BEFORE)


async def _rows(engine: AsyncEngine, query: str) -> list[tuple[Any, ...]]:
    async with reading(engine) as connection:
        read_rows = await connection.execute(text(f"SELECT {query}"))
        return [tuple(row) for row in read_rows]
