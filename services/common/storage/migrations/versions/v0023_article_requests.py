"""Requests of editors with their answers, and the files that documents show."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"

_REQUESTS = "article_requests"
_FILES = "article_files"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        _REQUESTS,
        sa.Column("article_id", sa.String(20), nullable=False),
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("answer", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("article_id", "user_id", "request_id", name=f"pk_{_REQUESTS}"),
        sa.ForeignKeyConstraint(["article_id"], ["articles.id"], name=f"fk_{_REQUESTS}_article_id"),
    )
    op.create_index(f"ix_{_REQUESTS}_user_id", _REQUESTS, ["user_id", "article_id", "at_ms"])
    op.create_index(f"ix_{_REQUESTS}_at_ms", _REQUESTS, ["at_ms"])
    op.create_table(
        _FILES,
        sa.Column("article_id", sa.String(20), nullable=False),
        sa.Column("file_id", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("article_id", "file_id", name=f"pk_{_FILES}"),
    )
    op.create_index(f"ix_{_FILES}_file_id", _FILES, ["file_id"])
