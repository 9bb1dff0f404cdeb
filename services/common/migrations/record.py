"""The record of the step that a database is at, and of the programs that may use it.

It is the row of Alembic's own table. Beside the step it has the oldest step whose programs still
work with the tables, so that a program can tell whether it may use tables that are newer than it
knows.
"""

from typing import NamedTuple

from sqlalchemy import Connection, inspect, text

from services.common.migrations import HEAD, OLDEST

TABLE = "alembic_version"
_OLDEST_STEP = "oldest_step"


class Record(NamedTuple):
    """The steps of a database.

    Attributes:
        step: the newest one that was taken; None where there are no tables.
        oldest: the oldest step whose programs work with the tables; None where it is not known.
    """

    step: str | None = None
    oldest: str | None = None

    @property
    def is_newer(self) -> bool:
        """Whether a newer version has taken steps that this one does not know."""
        return self.step is not None and self.step > HEAD

    @property
    def is_usable(self) -> bool:
        """Whether this version works with the tables as they are."""
        if self.is_newer:
            return self.oldest is not None and self.oldest <= HEAD
        return self.step == HEAD

    def advice(self) -> str:
        """Return what is to be done where the tables are too new for this version."""
        if self.oldest is None:
            return "run the version of the gateway that took that step, or a newer one"
        return (
            f"run a version of the gateway that knows step {self.oldest}, or restore a backup from "
            "before that step"
        )


def read_record(connection: Connection) -> Record:
    """Return the steps that the tables of a database are at."""
    found = inspect(connection)
    if not found.has_table(TABLE):
        return Record()
    row = connection.execute(text(f"SELECT * FROM {TABLE}")).mappings().first()
    if row is None:
        return Record()
    # The column came later; and another program's table may be there, without it.
    return Record(row["version_num"], row.get(_OLDEST_STEP))


def insert_record(connection: Connection) -> None:
    """Write the record of tables that were made as all steps together make them."""
    connection.execute(
        text(f"INSERT INTO {TABLE} (version_num, {_OLDEST_STEP}) VALUES (:step, :oldest)"),
        {"step": HEAD, "oldest": OLDEST},
    )


def write_oldest(connection: Connection) -> None:
    """Write the oldest step of programs, after all steps were taken."""
    connection.execute(text(f"UPDATE {TABLE} SET {_OLDEST_STEP} = :oldest"), {"oldest": OLDEST})
