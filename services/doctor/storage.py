"""Checks of the database and of the blob store; they leave no data behind."""

import asyncio
import sqlite3
import time
from collections.abc import Sequence

from sqlalchemy import text

from services.common.errors import GatewayError
from services.common.ids import new_id
from services.common.settings import SettingsError, Storage
from services.common.storage.database import SQLITE_FILE, is_sqlite, open_engine, reading
from services.common.storage.database_errors import DatabaseError
from services.common.storage.migrations import HEAD
from services.common.storage.migrations.record import Record, read_record
from services.doctor.findings import Finding, failure, ok, warning
from services.doctor.pooler import pooler
from services.files.blobs import open_blobs

_PROBE = b"a probe of `gateway doctor`"
_REACH = "check storage.database_url, that the server runs, and that this machine may connect to it"


async def database(storage: Storage) -> tuple[Sequence[Finding], float | None]:
    """Check that the database and its tables can be used.

    Returns:
        The findings, and the seconds by which the database's clock is ahead of this machine's; None
        if the database has no clock of its own, or does not answer.
    """
    if is_sqlite(storage):
        return await asyncio.to_thread(_sqlite, storage), None
    try:
        engine = open_engine(storage)
    except SettingsError as error:
        return [failure("database", str(error), "correct storage.database_url")], None
    pooled = await pooler(storage.database_url)
    if pooled is not None and pooled.status == "failure":
        return [pooled], None
    try:
        before = time.time()
        async with reading(engine) as connection:
            version = await connection.scalar(text("SHOW server_version"))
            now = float(await connection.scalar(text("SELECT extract(epoch FROM now())")))
            ahead_s = now - (before + time.time()) / 2
            record = await connection.run_sync(read_record)
            creates = await connection.scalar(
                text("SELECT has_schema_privilege(current_schema(), 'CREATE')")
            )
    except DatabaseError as error:
        return [failure("database", error.advice, _REACH)], None
    finally:
        await engine.dispose()
    findings = [ok("database", f"PostgreSQL {version}"), _migrations(record)]
    if pooled is not None:
        findings.append(pooled)
    if not (record.is_usable or record.is_newer or creates):
        findings.append(
            failure(
                "privileges",
                "the user of storage.database_url may not create tables",
                "run GRANT CREATE ON SCHEMA public, or make the user the owner of the database",
            )
        )
    return findings, ahead_s


def _sqlite(storage: Storage) -> Sequence[Finding]:
    file = storage.data_dir / SQLITE_FILE
    if not file.exists():
        return [ok("database", f"{file} will be created at the first start")]
    try:
        connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=5)
        try:
            (version,) = connection.execute("SELECT sqlite_version()").fetchone()
            tables = connection.execute(
                "SELECT name FROM sqlite_master WHERE name = 'alembic_version'"
            ).fetchall()
            connection.row_factory = sqlite3.Row
            rows = connection.execute("SELECT * FROM alembic_version") if tables else ()
            row = next((dict(row) for row in rows), {})
            record = Record(row.get("version_num"), row.get("oldest_step"))
        finally:
            connection.close()
    except sqlite3.Error as error:
        advice = (
            "check that this user may read the file; if it is damaged, restore a backup with "
            "`gateway restore`"
        )
        return [failure("database", f"{file}: {error}", advice)]
    return [ok("database", f"SQLite {version}, {file}"), _migrations(record)]


def _migrations(record: Record) -> Finding:
    if record.step is None:
        return ok("migrations", "no tables yet; the first start creates them")
    if record.is_newer and record.is_usable:
        return warning(
            "migrations",
            f"at step {record.step} of a newer version that is compatible with this one (latest "
            f"known step: {HEAD})",
            "run the same version everywhere after an upgrade or rollback",
        )
    if record.is_newer:
        return failure(
            "migrations",
            f"at step {record.step}, which is not compatible with this version (latest known "
            f"step: {HEAD})",
            record.advice(),
        )
    if not record.is_usable:
        return warning(
            "migrations",
            f"at step {record.step}; this version requires step {HEAD}",
            "make a backup; the next start migrates the database, while workers of the previous "
            "version continue to run",
        )
    return ok("migrations", f"at step {HEAD}, as this version requires")


async def blobs(storage: Storage) -> Finding:
    """Check that the blob store can write, read and delete."""
    where = storage.blob_url or str(storage.data_dir / "files")
    if not storage.blob_url and not storage.data_dir.exists():
        return ok("blobs", f"{where} will be created at the first start")
    key = new_id("file-")
    try:
        store = open_blobs(storage)
        async with store.writing(key) as writing:
            await writing.write(_PROBE)
            await writing.finish()
        try:
            async with store.reading(key, 0, len(_PROBE)) as pieces:
                content = b"".join([piece async for piece in pieces])
        finally:
            await store.delete(key)
    except SettingsError as error:
        return failure("blobs", str(error), "correct storage.blob_url")
    except GatewayError as error:
        # The store's own error message, if there is one.
        words = str(error.__cause__ or error.message).partition("\n")[0]
        return failure(
            "blobs",
            f"{where}: {words}",
            (
                "check storage.blob_url, the AWS_… variables, and that the bucket exists and is "
                "writable"
            )
            if storage.blob_url
            else "check that this user may write to the folder",
        )
    if content != _PROBE:
        return failure(
            "blobs",
            f"{where}: the data read differ from the data written",
            "check the storage device or service",
        )
    return ok("blobs", f"{where}: write, read and delete succeeded")
