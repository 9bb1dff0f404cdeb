"""The record of a database's migration step, and of the versions that are compatible with it.

The record is the row of Alembic's own table. Beside the step, it has the oldest step whose programs
are compatible with the tables, so that a program can check whether it may use newer tables.
"""

from typing import NamedTuple

from sqlalchemy import Connection, inspect, text

from services.common.storage.migrations import HEAD, OLDEST

TABLE = "alembic_version"
_OLDEST_STEP = "oldest_step"


class Record(NamedTuple):
    """The migration steps of a database.

    Attributes:
        step: the newest applied step; None if there are no tables.
        oldest: the oldest step whose programs are compatible with the tables; None if unknown.
    """

    step: str | None = None
    oldest: str | None = None

    @property
    def is_newer(self) -> bool:
        """Whether a newer version has applied steps that this version does not know."""
        return self.step is not None and self.step > HEAD

    @property
    def is_usable(self) -> bool:
        """Whether this version is compatible with the current tables."""
        if self.is_newer:
            return self.oldest is not None and self.oldest <= HEAD
        return self.step == HEAD

    def advice(self) -> str:
        """Return advice for an operator whose tables are too new for this version."""
        if self.oldest is None:
            return "run the version of the gateway that applied this step, or a newer one"
        return (
            f"run a version of the gateway that has step {self.oldest}, or restore a backup from "
            "before that step"
        )


def read_record(connection: Connection) -> Record:
    """Read the record of a database."""
    inspector = inspect(connection)
    if not inspector.has_table(TABLE):
        return Record()
    row = connection.execute(text(f"SELECT * FROM {TABLE}")).mappings().first()
    if row is None:
        return Record()
    # The column was added later, and the table of another program may lack it.
    return Record(row["version_num"], row.get(_OLDEST_STEP))


def insert_record(connection: Connection) -> None:
    """Write the record of tables that were created from the snapshot."""
    connection.execute(
        text(f"INSERT INTO {TABLE} (version_num, {_OLDEST_STEP}) VALUES (:step, :oldest)"),
        {"step": HEAD, "oldest": OLDEST},
    )


def write_oldest(connection: Connection) -> None:
    """Write the oldest compatible step, after all migrations have been applied."""
    connection.execute(text(f"UPDATE {TABLE} SET {_OLDEST_STEP} = :oldest"), {"oldest": OLDEST})
