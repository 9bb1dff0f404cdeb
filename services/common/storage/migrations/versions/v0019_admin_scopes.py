"""Scopes of admin keys, and names and addresses of actors in the audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"

_COLUMNS = (
    # Programs that do not know scopes make keys with all of them.
    ("admin_keys", "scopes", 64, "all"),
    ("audit_log", "actor_name", 128, ""),
    ("audit_log", "address", 64, ""),
)


def upgrade() -> None:
    """Add the columns, which workers of an older version leave out."""
    for table, name, length, default in _COLUMNS:
        column = sa.Column(name, sa.String(length), nullable=False, server_default=default)
        op.add_column(table, column)
