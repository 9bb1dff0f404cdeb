import asyncio
import logging
import os
import random
import socket
import stat
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, event, exc, func, insert, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.errors.v1 import errors_pb2
from services.accounts import tables as accounts
from services.accounts.erasure import tables as erasure
from services.accounts.invitations import tables as invitations
from services.accounts.limits import tables as limits
from services.accounts.providers import tables as providers
from services.accounts.requests import tables as requests
from services.accounts.sign_in import tables as sign_in
from services.accounts.usage import tables as usage
from services.articles import tables as articles
from services.batches import tables as batches
from services.common.errors import GatewayError
from services.common.settings import SettingsError, Storage
from services.common.storage import (
    database,
    leases,
    migrations,
    owners,
    secrets,
    shown_files,
)
from services.common.storage.database import (
    execute_many,
    metadata,
    open_engine,
    reading,
    reading_once,
    writing,
)
from services.common.storage.migrations import snapshot
from services.common.storage.migrations.runner import migrate
from services.files import repository as files
from services.files import upload_rows as file_uploads
from services.memory.storage import tables as memories
from services.memory.vector_stores import tables as vector_stores
from services.responses import tables as stored
from services.responses.chats import tables as chats
from services.responses.conversations import tables as conversations
from tests.databases import PostgreSQL
from tests.forked import fork

TABLES = {
    accounts.teams,
    accounts.users,
    accounts.api_keys,
    accounts.admin_keys,
    accounts.audit_log,
    sign_in.sessions,
    invitations.invitations,
    erasure.erasures,
    erasure.erased_items,
    providers.stored_providers,
    secrets.table,
    leases.table,
    files.files,
    files.usage,
    file_uploads.uploads,
    file_uploads.upload_parts,
    articles.groups,
    articles.members,
    articles.grants,
    articles.usage,
    articles.articles,
    articles.operations,
    articles.snapshots,
    articles.sessions,
    articles.requests,
    articles.comments,
    articles.suggestions,
    shown_files.shown_files,
    shown_files.suggested_files,
    owners.owners,
    memories.memories,
    memories.parts,
    memories.keys,
    memories.queues,
    memories.claims,
    memories.archives,
    memories.archived_turns,
    memories.postings,
    memories.vectors,
    memories.signatures,
    memories.jobs,
    memories.summaries,
    memories.facts,
    memories.sources,
    usage.records,
    usage.days,
    usage.label_days,
    usage.hours,
    usage.model_hours,
    requests.request_log,
    requests.request_log_labels,
    stored.responses,
    stored.contents,
    stored.output_items,
    conversations.conversations,
    conversations.items,
    conversations.origins,
    chats.chats,
    chats.chat_contents,
    batches.batches,
    batches.batch_requests,
    batches.batch_results,
    batches.provider_batches,
    batches.batch_tasks,
    vector_stores.vector_stores,
    vector_stores.vector_store_files,
    vector_stores.vector_store_batches,
    limits.limits,
    limits.allowances,
    limits.notifications,
    limits.model_groups,
}

_MIGRATE = """
import asyncio, sys
from pathlib import Path
from services.common.storage.database import open_engine
from services.common.storage.migrations.runner import migrate
from services.common.storage.secrets import load_secrets
from services.common.settings import Storage

async def main():
    engine = open_engine(Storage(data_dir=Path(sys.argv[1]), database_url=sys.argv[2]))
    sys.stdin.readline()
    await migrate(engine)
    print((await load_secrets(engine)).signing_keys)
    await engine.dispose()

print("waiting", flush=True)
asyncio.run(main())
"""


def _team(name: str) -> dict[str, object]:
    return {"id": f"team_{name}", "name": name, "plan": "team_pro", "created_at_ms": 1}


async def _names(engine: AsyncEngine) -> list[str]:
    async with reading(engine) as connection:
        return list(await connection.scalars(select(accounts.teams.c.name)))


async def test_migrated_tables_match_those_of_the_repositories(engine: AsyncEngine) -> None:
    def differences(connection: Connection) -> list[object]:
        children = text("SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r'")
        is_postgresql = connection.dialect.name == "postgresql"
        partitions = set(connection.scalars(children)) if is_postgresql else set()
        options = {
            "compare_type": True,
            "include_name": lambda name, kind, _: kind != "table" or name not in partitions,
        }
        context = MigrationContext.configure(connection, opts=options)
        return list(compare_metadata(context, metadata))

    assert set(metadata.tables.values()) == TABLES
    async with reading(engine) as connection:
        assert await connection.run_sync(differences) == []


async def test_a_statement_that_reads_alone_is_in_no_transaction(engine: AsyncEngine) -> None:
    async with reading_once(engine) as connection:
        count = select(func.count()).select_from(accounts.teams)
        assert await connection.scalar(count) == 0
        async with writing(engine) as other:
            await other.execute(insert(accounts.teams), _team("new"))
        assert await connection.scalar(count) == 1


async def test_what_read_alone_leaves_later_transactions_as_they_are(engine: AsyncEngine) -> None:
    for _ in range(3):
        async with reading_once(engine) as connection:
            await connection.scalar(select(accounts.teams.c.name))
    with pytest.raises(RuntimeError):
        async with writing(engine) as connection:
            await connection.execute(insert(accounts.teams), _team("undone"))
            raise RuntimeError
    assert await _names(engine) == []


async def test_any_number_may_read_alone_at_once(engine: AsyncEngine) -> None:
    async def read() -> list[str]:
        async with reading_once(engine) as connection:
            return list(await connection.scalars(select(accounts.teams.c.name)))

    async with writing(engine) as connection:
        await connection.execute(insert(accounts.teams), _team("kept"))
    assert await asyncio.gather(*(read() for _ in range(40))) == [["kept"]] * 40


def test_the_known_head_is_the_newest_step() -> None:
    config = Config()
    config.set_main_option("script_location", os.path.dirname(migrations.__file__))
    assert ScriptDirectory.from_config(config).get_heads() == [migrations.HEAD]


async def test_a_new_sqlite_file_has_the_tables_that_all_steps_make() -> None:
    # `python -m services.common.storage.migrations.snapshot` writes it.
    assert snapshot.FILE.read_text() == await snapshot.dump_schema()


async def test_a_second_migration_changes_nothing(engine: AsyncEngine) -> None:
    async with writing(engine) as connection:
        await connection.execute(insert(accounts.teams), _team("kept"))
    await migrate(engine)
    assert await _names(engine) == ["kept"]


async def test_processes_migrate_once_and_share_secrets(empty_storage: Storage) -> None:
    processes = [
        await fork(
            *(sys.executable, "-c", _MIGRATE),
            *(str(empty_storage.data_dir), empty_storage.database_url),
        )
        for _ in range(3)
    ]
    for process in processes:
        assert await process.stdout.readline() == b"waiting\n"
    outputs = await asyncio.gather(*(process.communicate(b"\n") for process in processes))
    assert [process.returncode for process in processes] == [0] * 3
    assert len({output for output, _ in outputs}) == 1


async def test_many_rows_are_written_some_at_a_time(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_ROWS_AT_ONCE", 2)
    sizes: list[int] = []

    @event.listens_for(engine.sync_engine, "before_cursor_execute")
    def note(
        _connection: object,
        _cursor: object,
        statement: str,
        parameters: list[object],
        _context: object,
        is_many: bool,
    ) -> None:
        if statement.startswith("INSERT"):
            sizes.append(len(parameters) if is_many else 1)

    rows = [_team(f"team {number}") for number in range(5)]
    async with writing(engine) as connection:
        await execute_many(connection, insert(accounts.teams), rows)
    assert sizes == [2, 2, 1]
    assert sorted(await _names(engine)) == [f"team {number}" for number in range(5)]


async def test_a_transaction_that_fails_leaves_nothing(engine: AsyncEngine) -> None:
    with pytest.raises(ZeroDivisionError):
        async with writing(engine) as connection:
            await connection.execute(insert(accounts.teams), _team("gone"))
            raise ZeroDivisionError
    assert await _names(engine) == []


async def test_reading_writes_nothing(engine: AsyncEngine) -> None:
    async with reading(engine) as connection:
        await connection.execute(insert(accounts.teams), _team("gone"))
    assert await _names(engine) == []


async def test_tables_are_held_to_what_refers_to_what(engine: AsyncEngine) -> None:
    with pytest.raises(exc.IntegrityError):
        async with writing(engine) as connection:
            await connection.execute(
                insert(accounts.users), {**_team("lonely"), "team_id": "team_nowhere"}
            )


async def test_a_failure_of_the_callers_own_is_no_operational_error(engine: AsyncEngine) -> None:
    with pytest.raises(FileNotFoundError):
        async with writing(engine):
            raise FileNotFoundError


async def test_a_mistake_in_a_statement_is_a_fault_not_silence(engine: AsyncEngine) -> None:
    with pytest.raises(exc.DBAPIError):
        async with writing(engine) as connection:
            await connection.execute(insert(accounts.teams), _team("twice"))
            await connection.execute(insert(accounts.teams), _team("twice"))


async def test_parameters_stay_out_of_the_texts_of_errors(engine: AsyncEngine) -> None:
    with pytest.raises(exc.DBAPIError) as raised:
        async with writing(engine) as connection:
            await connection.execute(
                insert(accounts.teams), {**_team("hush-hush"), "plan": "no such plan"}
            )
    assert "[SQL parameters hidden" in str(raised.value)


async def test_a_missing_server_is_unavailable_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        url = f"postgresql://gateway:hunter2@127.0.0.1:{port}/gateway"
        engine = open_engine(Storage(data_dir=tmp_path, database_url=url))
        with caplog.at_level(logging.ERROR), pytest.raises(GatewayError) as raised:
            await migrate(engine)
    assert raised.value.reason == errors_pb2.REASON_UNAVAILABLE
    assert raised.value.message == "the database does not answer; try again"
    assert raised.value.retry_after_s == 1
    words = caplog.records[0].__dict__["driver"]
    assert str(port) in words
    assert "hunter2" not in caplog.text + words
    await engine.dispose()


@pytest.mark.parametrize("storage", ["postgresql"], indirect=True)
async def test_a_lost_connection_is_unavailable_once_and_made_anew(engine: AsyncEngine) -> None:
    with pytest.raises(GatewayError) as raised:
        async with reading(engine) as connection:
            await connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    assert raised.value.reason == errors_pb2.REASON_UNAVAILABLE
    assert await _names(engine) == []


@pytest.mark.parametrize("storage", ["postgresql"], indirect=True)
async def test_a_connection_lost_while_idle_is_not_noticed(engine: AsyncEngine) -> None:
    async with reading(engine) as first, reading(engine) as second:
        pid = await first.scalar(text("SELECT pg_backend_pid()"))
        await first.close()
        await second.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})
    assert await _names(engine) == []


async def test_sqlite_is_durable_shared_and_strict(tmp_path: Path) -> None:
    engine = open_engine(Storage(data_dir=tmp_path))
    async with reading(engine) as connection:
        for pragma, value in (("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1)):
            assert await connection.scalar(text(f"PRAGMA {pragma}")) == value
        assert await connection.scalar(text("PRAGMA busy_timeout")) >= 5000
    await engine.dispose()


async def test_a_sqlite_writer_holds_the_lock_from_the_beginning(tmp_path: Path) -> None:
    engine = open_engine(Storage(data_dir=tmp_path))
    await migrate(engine)
    async with writing(engine), engine.connect() as other:
        await other.exec_driver_sql("ROLLBACK")
        await other.exec_driver_sql("PRAGMA busy_timeout = 0")
        with pytest.raises(exc.OperationalError, match="locked"):
            await other.exec_driver_sql("BEGIN IMMEDIATE")
        await other.exec_driver_sql("BEGIN")
    await engine.dispose()


async def test_a_writer_who_is_cancelled_at_any_moment_holds_no_lock(tmp_path: Path) -> None:
    engine = open_engine(Storage(data_dir=tmp_path))

    async def write(number: int) -> None:
        async with writing(engine) as connection:
            row = {"number": number}
            added = text("INSERT INTO t (number) VALUES (:number) RETURNING id")
            (await connection.execute(added, row)).first()
            (await connection.execute(text("SELECT * FROM t ORDER BY id DESC"))).first()

    async with writing(engine) as connection:
        await connection.execute(text("CREATE TABLE t (id INTEGER PRIMARY KEY, number INTEGER)"))
    chance = random.Random(1)
    for number in range(100):
        tasks = [asyncio.create_task(write(number)) for _ in range(6)]
        # Threads decide how far each is by then.
        await asyncio.sleep(chance.uniform(0, 0.01))
        for _ in range(2):
            for task in tasks:
                task.cancel()
            await asyncio.sleep(0)
        await asyncio.gather(*tasks, return_exceptions=True)
        # It would wait for ten seconds, and fail.
        await write(number)
    await engine.dispose()


async def test_the_data_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "100%"
    engine = open_engine(Storage(data_dir=folder))
    await migrate(engine)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / "gateway.db").exists()
    await engine.dispose()


async def test_a_process_opens_no_more_connections_than_set(postgresql: PostgreSQL) -> None:
    url = f"{postgresql.url}&application_name=bounded"
    engine = open_engine(Storage(database_url=url, database_connections=6))
    query = text("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'bounded'")

    async def count() -> int:
        async with reading(engine) as connection:
            connections: int = await connection.scalar(query)
            return connections

    counts = await asyncio.gather(*(count() for _ in range(30)))
    await engine.dispose()
    assert max(counts) == 6


def test_an_unknown_kind_of_database_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match=r"storage\.database_url: must be postgresql://"):
        open_engine(Storage(database_url="mysql://root:hunter2@db/x"))


def test_a_data_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match=r"storage\.data_dir: .*file"):
        open_engine(Storage(data_dir=tmp_path / "file"))


async def test_a_new_file_may_be_opened_by_many_at_once(tmp_path: Path) -> None:
    for number in range(40):
        engines = [open_engine(Storage(data_dir=tmp_path / str(number))) for _ in range(4)]
        try:
            await asyncio.gather(*map(_answers, engines))
        finally:
            for engine in engines:
                await engine.dispose()


async def _answers(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        await connection.execute(text("SELECT 1"))
