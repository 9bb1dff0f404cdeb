"""What requests used and cost, and the sums of that by day."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

_TOKENS = (
    *("input_tokens", "output_tokens", "cached_tokens"),
    *("cache_written_tokens", "reasoning_tokens"),
)


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "usage_records",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("time_ms", sa.BigInteger(), nullable=False),
        sa.Column("request_id", sa.String(128), nullable=False),
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("team_id", sa.String(64), nullable=False),
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("endpoint", sa.String(16), nullable=False),
        sa.Column("requested_model", sa.String(512), nullable=False),
        sa.Column("model", sa.String(512), nullable=False),
        sa.Column("provider", sa.String(256), nullable=False),
        sa.Column("upstream_model", sa.String(512), nullable=False),
        sa.Column("step", sa.String(256), nullable=False),
        sa.Column("outcome", sa.SmallInteger(), nullable=False),
        sa.Column("requests", sa.SmallInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("first_content_ms", sa.BigInteger(), nullable=True),
        sa.Column("duration_ms", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in _TOKENS),
        sa.Column("cost_pusd", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_usage_records"),
    )
    op.create_table(
        "usage_days",
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("team_id", sa.String(64), nullable=False),
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("model", sa.String(512), nullable=False),
        sa.Column("provider", sa.String(256), nullable=False),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.Column("failed_requests", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in _TOKENS),
        sa.Column("cost_pusd", sa.BigInteger(), nullable=False),
        sa.Column("unpriced", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(
            *("day", "user_id", "team_id", "key_id", "model", "provider"), name="pk_usage_days"
        ),
    )
