"""Names, expiry and rotation of keys; admin keys; the audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Make the columns, which workers of an older version leave out, and the tables."""
    for column in (
        sa.Column("name", sa.String(128), nullable=False, server_default=""),
        sa.Column("expires_at_ms", sa.BigInteger()),
        sa.Column("disabled", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("replaces", sa.String(64)),
    ):
        op.add_column("api_keys", column)
    op.create_index("ix_api_keys_replaces", "api_keys", ["replaces"], unique=True)
    op.create_table(
        "admin_keys",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("hash", sa.LargeBinary(32), nullable=False),
        sa.Column("prefix", sa.String(16), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_admin_keys"),
        sa.UniqueConstraint("hash", name="uq_admin_keys_hash"),
    )
    op.create_table(
        "audit_log",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(64), nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("subject_kind", sa.String(16), nullable=False),
        sa.Column("subject_id", sa.String(64), nullable=False),
        sa.Column("before", sa.Text()),
        sa.Column("after", sa.Text()),
        sa.Column("request_id", sa.String(128), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_log"),
    )
    op.create_index("ix_audit_log_at_ms", "audit_log", ["at_ms", "id"])
    op.create_index("ix_audit_log_subject_id", "audit_log", ["subject_id", "at_ms", "id"])
