"""The log of requests."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

_TABLE = "request_log"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        _TABLE,
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("time_ms", sa.BigInteger(), nullable=False),
        sa.Column("request_id", sa.String(128), nullable=False),
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("team_id", sa.String(64), nullable=False),
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("endpoint", sa.String(256), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("error_code", sa.String(64), nullable=False),
        sa.Column("requested_model", sa.String(512), nullable=False),
        sa.Column("model", sa.String(512), nullable=False),
        sa.Column("provider", sa.String(256), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("duration_ms", sa.BigInteger(), nullable=False),
        sa.Column("first_content_ms", sa.BigInteger(), nullable=True),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_pusd", sa.BigInteger(), nullable=True),
        sa.Column("has_bodies", sa.SmallInteger(), nullable=False),
        sa.Column("search_text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=f"pk_{_TABLE}"),
    )
    op.create_index(f"ix_{_TABLE}_user_id_id", _TABLE, ["user_id", "id"])
    op.create_index(f"ix_{_TABLE}_key_id_id", _TABLE, ["key_id", "id"])
    op.create_index(f"ix_{_TABLE}_request_id_id", _TABLE, ["request_id", "id"])
