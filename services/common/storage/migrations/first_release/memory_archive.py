"""The index of archived turns."""

import sqlalchemy as sa
from alembic import op


def create() -> None:
    """Create the tables."""
    op.create_table(
        "memory_archives",
        sa.Column("entity_id", sa.String(64), nullable=False),
        sa.Column("owner_id", sa.String(64), nullable=False),
        sa.Column("turns", sa.BigInteger(), nullable=False),
        sa.Column("terms", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("entity_id", name="pk_memory_archives"),
    )
    op.create_table(
        "memory_archive_turns",
        sa.Column("entity_id", sa.String(64), nullable=False),
        sa.Column("turn", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("terms", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("entity_id", "turn", name="pk_memory_archive_turns"),
        _of_archive("memory_archive_turns"),
    )
    op.create_table(
        "memory_archive_postings",
        sa.Column("entity_id", sa.String(64), nullable=False),
        sa.Column("term", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("block", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("postings", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("entity_id", "term", "block", name="pk_memory_archive_postings"),
        _of_archive("memory_archive_postings"),
        sqlite_with_rowid=False,
    )
    _create_vectors()


def _create_vectors() -> None:
    op.create_table(
        "memory_archive_vectors",
        sa.Column("entity_id", sa.String(64), nullable=False),
        sa.Column("turn", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("entity_id", "turn", "model", name="pk_memory_archive_vectors"),
        sa.ForeignKeyConstraint(
            ["entity_id", "turn"],
            ["memory_archive_turns.entity_id", "memory_archive_turns.turn"],
            name="fk_memory_archive_vectors_turn",
        ),
    )
    op.create_table(
        "memory_archive_signatures",
        sa.Column("entity_id", sa.String(64), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("dimensions", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("block", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("signatures", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint(
            "entity_id", "model", "dimensions", "block", name="pk_memory_archive_signatures"
        ),
        _of_archive("memory_archive_signatures"),
        sqlite_with_rowid=False,
    )


def _of_archive(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["entity_id"], ["memory_archives.entity_id"], name=f"fk_{table}_entity_id"
    )
