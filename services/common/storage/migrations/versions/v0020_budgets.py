"""Budgets per week and per period, soft limits with notifications, and groups of models."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"

_LIMITS = (
    ("spend_per_week_pusd", sa.BigInteger()),
    ("spend_per_period_pusd", sa.BigInteger()),
    ("period_start_day", sa.BigInteger()),
    ("period_days", sa.BigInteger()),
    ("soft_limit_percent", sa.BigInteger()),
    ("soft_limits_reached", sa.Text()),
    ("allowed_model_groups", sa.Text()),
)
_NOTIFICATIONS = "budget_notifications"
_GROUPS = "model_groups"


def upgrade() -> None:
    """Add the columns and the tables; programs that do not know them apply the other limits."""
    for name, kind in _LIMITS:
        op.add_column("limits", sa.Column(name, kind))
    op.create_table(
        _NOTIFICATIONS,
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
        sa.PrimaryKeyConstraint("id", name=f"pk_{_NOTIFICATIONS}"),
    )
    op.create_index(
        f"ix_{_NOTIFICATIONS}_next_attempt_at_ms", _NOTIFICATIONS, ["next_attempt_at_ms"]
    )
    op.create_index(f"ix_{_NOTIFICATIONS}_subject_id", _NOTIFICATIONS, ["subject_id"])
    op.create_table(
        _GROUPS,
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("models", sa.Text(), nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=f"pk_{_GROUPS}"),
    )
