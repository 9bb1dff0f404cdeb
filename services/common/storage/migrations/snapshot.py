"""Snapshot of the tables that result from all migrations, for new SQLite files.

`python -m services.common.storage.migrations.snapshot` regenerates `sqlite.sql`, which is
necessary after a step was added. A start with an empty folder uses the file in place of the
migrations, and does not load Alembic.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.settings import Storage
from services.common.storage import migrations
from services.common.storage.database import open_engine, writing_alone
from services.common.storage.migrations.runner import upgrade

FILE = Path(migrations.__file__).parent / "sqlite.sql"
# Tables in the order of their creation, since they refer to each other; then indexes by name.
_ALL = (
    "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL "
    "ORDER BY type = 'index', CASE type WHEN 'index' THEN name END, rowid"
)


async def dump_schema() -> str:
    """Return the content of the file: the statements, each on lines of its own."""
    with tempfile.TemporaryDirectory() as folder:
        engine = open_engine(Storage(data_dir=Path(folder)))
        try:
            return await _from_steps(engine)
        finally:
            await engine.dispose()


async def _from_steps(engine: AsyncEngine) -> str:
    async with writing_alone(engine) as connection:
        await connection.run_sync(upgrade)
        statements = await connection.run_sync(_statements)
    return "".join(f"{statement};\n" for statement in statements)


def _statements(connection: Connection) -> Sequence[str]:
    sql_statements: Sequence[str] = connection.exec_driver_sql(_ALL).scalars().all()
    # Trailing blanks would fail the checks of the repository.
    return [
        "\n".join(line.rstrip() for line in statement.splitlines()) for statement in sql_statements
    ]


if __name__ == "__main__":
    FILE.write_text(asyncio.run(dump_schema()))
