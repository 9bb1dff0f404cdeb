"""The tables as all steps together make them, for a new SQLite file.

`python -m services.common.migrations.snapshot` writes `sqlite.sql` anew after a step was
added. A start on an empty folder takes it in place of the steps, and loads no Alembic.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common import migrations
from services.common.database import open_engine, upgrade, writing_alone
from services.common.settings import Storage

FILE = Path(migrations.__file__).parent / "sqlite.sql"
# Tables come as they were made, since one refers to another; indexes in an order of their own.
_ALL = (
    "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL "
    "ORDER BY type = 'index', CASE type WHEN 'index' THEN name END, rowid"
)


async def taken() -> str:
    """Return what the file is to hold: the statements, each on lines of its own."""
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
    found: Sequence[str] = connection.exec_driver_sql(_ALL).scalars().all()
    # Only what has no trailing blanks passes the checks of a repository.
    return ["\n".join(line.rstrip() for line in statement.splitlines()) for statement in found]


if __name__ == "__main__":
    FILE.write_text(asyncio.run(taken()))
