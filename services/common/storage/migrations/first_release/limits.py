"""Limits and budgets, what each worker holds of them, and groups of models."""

import sqlalchemy as sa
from alembic import op


def create() -> None:
    """Create the tables."""
    _create_limits()
    _create_budgets()


def _create_limits() -> None:
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
        sa.Column("spend_per_week_pusd", sa.BigInteger()),
        sa.Column("spend_per_period_pusd", sa.BigInteger()),
        sa.Column("period_start_day", sa.BigInteger()),
        sa.Column("period_days", sa.BigInteger()),
        sa.Column("soft_limit_percent", sa.BigInteger()),
        sa.Column("soft_limits_reached", sa.Text()),
        sa.Column("allowed_model_groups", sa.Text()),
        sa.Column("subject_name", sa.Text()),
        sa.PrimaryKeyConstraint("subject_kind", "subject_id", name="pk_limits"),
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
        sa.Column("reserved", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("reserved_until_ms", sa.BigInteger(), nullable=False, server_default="0"),
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


def _create_budgets() -> None:
    op.create_table(
        "budget_notifications",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("subject_kind", sa.String(16), nullable=False),
        sa.Column("subject_id", sa.String(64), nullable=False),
        sa.Column("measure", sa.String(32), nullable=False),
        sa.Column("window_start_ms", sa.BigInteger(), nullable=False),
        sa.Column("window_end_ms", sa.BigInteger(), nullable=False),
        sa.Column("limit_pusd", sa.BigInteger(), nullable=False),
        sa.Column("spent_pusd", sa.BigInteger(), nullable=False),
        sa.Column("soft_limit_percent", sa.BigInteger(), nullable=False),
        sa.Column("reached_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_budget_notifications"),
    )
    op.create_index(
        "ix_budget_notifications_next_attempt_at_ms", "budget_notifications", ["next_attempt_at_ms"]
    )
    op.create_index("ix_budget_notifications_subject_id", "budget_notifications", ["subject_id"])
    op.create_table(
        "model_groups",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("models", sa.Text(), nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_model_groups"),
    )
