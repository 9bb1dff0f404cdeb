"""Reserved parts of allowances, and whether the tokens of a usage record are estimated."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

_COLUMNS = (
    ("allowances", "reserved", sa.BigInteger()),
    ("allowances", "reserved_until_ms", sa.BigInteger()),
    ("usage_records", "estimated", sa.SmallInteger()),
    ("usage_days", "estimated", sa.BigInteger()),
)


def upgrade() -> None:
    """Add the columns; programs that do not know them reserve and estimate nothing."""
    for table, name, kind in _COLUMNS:
        op.add_column(table, sa.Column(name, kind, nullable=False, server_default="0"))
