"""Archived turns without their sessions, which the ranking does not use."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_TABLE = "memory_archive_turns"


def upgrade() -> None:
    """Drop the column with the first turn of the session."""
    op.drop_column(_TABLE, "session")


def downgrade() -> None:
    """Add the column; each turn counts as a session of its own."""
    op.add_column(_TABLE, sa.Column("session", sa.BigInteger(), nullable=False, server_default="0"))
    op.execute(f"UPDATE {_TABLE} SET session = turn")
