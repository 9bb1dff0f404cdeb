"""Usage by tags and end users, and limits of further kinds of subjects."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"

_LABEL_DAYS = "usage_label_days"
_CALLERS = ("user_id", "team_id", "key_id")
_COUNTS = (
    *("requests", "failed_requests", "input_tokens", "output_tokens", "cached_tokens"),
    *("cache_written_tokens", "reasoning_tokens", "cost_pusd", "unpriced", "estimated"),
)


def upgrade() -> None:
    """Create the table of sums; the services alone check the kinds of subjects."""
    key: list[sa.Column[Any]] = [
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("label", sa.String(32), nullable=False),
        sa.Column("value", sa.String(64), nullable=False),
        *(sa.Column(name, sa.String(64), nullable=False) for name in _CALLERS),
        sa.Column("model", sa.String(512), nullable=False),
        sa.Column("provider", sa.String(256), nullable=False),
    ]
    op.create_table(
        _LABEL_DAYS,
        *key,
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in _COUNTS),
        sa.PrimaryKeyConstraint(*(column.name for column in key), name=f"pk_{_LABEL_DAYS}"),
    )
    for names in (("label", "day"), ("user_id", "label", "day")):
        op.create_index(f"ix_{_LABEL_DAYS}_{'_'.join(names)}", _LABEL_DAYS, [*names])
    with op.batch_alter_table("limits") as limits:
        limits.drop_constraint("ck_limits_subject_kind", type_="check")
        limits.add_column(sa.Column("subject_name", sa.Text(), nullable=True))
