"""Limits of keys, users and teams, and what each worker holds of them."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "limits",
        sa.Column("subject_kind", sa.String(16), nullable=False),
        sa.Column("subject_id", sa.String(64), nullable=False),
        sa.Column("requests_per_minute", sa.BigInteger()),
        sa.Column("tokens_per_minute", sa.BigInteger()),
        sa.Column("concurrent_requests", sa.BigInteger()),
        sa.Column("spend_per_day_pusd", sa.BigInteger()),
        sa.Column("spend_per_month_pusd", sa.BigInteger()),
        sa.Column("allowed_models", sa.Text()),
        sa.Column("updated_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("subject_kind", "subject_id", name="pk_limits"),
        sa.CheckConstraint(
            "subject_kind IN ('key', 'user', 'team')", name="ck_limits_subject_kind"
        ),
    )
    op.create_table(
        "allowances",
        sa.Column("subject_kind", sa.String(16), nullable=False),
        sa.Column("subject_id", sa.String(64), nullable=False),
        sa.Column("measure", sa.String(32), nullable=False),
        sa.Column("window_start_ms", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.String(64), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("ends_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(
            "subject_kind",
            "subject_id",
            "measure",
            "window_start_ms",
            "holder",
            name="pk_allowances",
        ),
    )
    op.create_index("ix_allowances_ends_at_ms", "allowances", ["ends_at_ms"])
