"""Archived turns without their sessions, which the ranking does not use."""

from alembic import op

revision = "0009"
down_revision = "0008"

_TABLE = "memory_archive_turns"


def upgrade() -> None:
    """Drop the column with the first turn of the session."""
    op.drop_column(_TABLE, "session")
