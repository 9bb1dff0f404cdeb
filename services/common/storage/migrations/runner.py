"""Brings the tables of a database to this version, by its snapshot or by the missing migrations."""

import logging
from pathlib import Path

from sqlalchemy import Connection, inspect
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.errors import unavailable
from services.common.storage.database import reading, writing_alone
from services.common.storage.migrations import HEAD
from services.common.storage.migrations.record import (
    Record,
    insert_record,
    read_record,
    write_oldest,
)

_FOLDER = Path(__file__).parent
_SNAPSHOT = _FOLDER / "sqlite.sql"

log = logging.getLogger(__name__)


async def migrate(engine: AsyncEngine) -> None:
    """Migrate the tables to this version; any number of processes may call it at once.

    Tables of a newer version that are compatible with this one stay unchanged.

    Raises:
        GatewayError: unavailable, when the database does not answer, or the tables of a newer
            version are incompatible with this one.
    """
    async with reading(engine) as connection:
        if _is_usable(await connection.run_sync(read_record)):
            return
    async with writing_alone(engine) as connection:
        await connection.run_sync(_migrate)


def _is_usable(record: Record) -> bool:
    """Return whether the tables can be used without migration; log tables of a newer version.

    Raises:
        GatewayError: unavailable, when the tables are too new.
    """
    if record.is_newer:
        steps = {"step": record.step, "known": HEAD, "oldest": record.oldest}
        if not record.is_usable:
            log.error("the database is too new for this version", extra=steps)
            raise unavailable(
                f"the database is at step {record.step}, which is not compatible with this "
                f"version of the gateway (latest known step: {HEAD}): {record.advice()}"
            )
        log.warning(
            "the database is of a newer version that is compatible with this one", extra=steps
        )
    return record.is_usable


def _migrate(connection: Connection) -> None:
    is_new = not inspect(connection).get_table_names()
    if is_new and connection.dialect.name == "sqlite":
        _make(connection)
    # Checked again: another process may have migrated the tables in the meantime.
    elif not _is_usable(read_record(connection)):
        upgrade(connection)


def _make(connection: Connection) -> None:
    """Create the tables of a new SQLite file from the snapshot of all migrations."""
    for statement in _SNAPSHOT.read_text().split(";\n")[:-1]:
        connection.exec_driver_sql(statement)
    insert_record(connection)
    log.info("the database was created", extra={"step": HEAD})


def upgrade(connection: Connection) -> None:
    """Apply the missing migrations in the current transaction.

    Raises:
        GatewayError: unavailable, when the current step of the tables is unknown.
    """
    # Alembic logs every step; the one line below is enough.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        log.error("the database could not be migrated", exc_info=error)
        raise unavailable(
            f"the database is at step {read_record(connection).step}, which this version of the "
            f"gateway does not have (latest known step: {HEAD}): run the version that created it"
        ) from error
    write_oldest(connection)
    log.info("the database was migrated", extra={"step": HEAD})
