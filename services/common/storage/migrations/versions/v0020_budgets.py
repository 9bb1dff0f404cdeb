"""Budgets per week and per period."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"

_LIMITS = (
    "spend_per_week_pusd",
    "spend_per_period_pusd",
    "period_start_day",
    "period_days",
)


def upgrade() -> None:
    """Add the columns; programs that do not know them apply the other limits."""
    for name in _LIMITS:
        op.add_column("limits", sa.Column(name, sa.BigInteger()))


def downgrade() -> None:
    """Drop the columns."""
    for name in reversed(_LIMITS):
        op.drop_column("limits", name)
