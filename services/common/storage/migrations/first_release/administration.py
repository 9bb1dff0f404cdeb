"""Admin keys, the audit log, erasures of users' data, and stored providers."""

import sqlalchemy as sa
from alembic import op


def create() -> None:
    """Create the tables."""
    op.create_table(
        "admin_keys",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("hash", sa.LargeBinary(32), nullable=False),
        sa.Column("prefix", sa.String(16), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at_ms", sa.BigInteger()),
        sa.Column("scopes", sa.String(64), nullable=False, server_default="all"),
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
        sa.Column("actor_name", sa.String(128), nullable=False, server_default=""),
        sa.Column("address", sa.String(64), nullable=False, server_default=""),
        sa.PrimaryKeyConstraint("id", name="pk_audit_log"),
    )
    op.create_index("ix_audit_log_at_ms", "audit_log", ["at_ms", "id"])
    op.create_index("ix_audit_log_subject_id", "audit_log", ["subject_id", "at_ms", "id"])
    _create_erasures()
    op.create_table(
        "stored_providers",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("base_url", sa.String(2048), nullable=False),
        sa.Column("sealed_key", sa.LargeBinary()),
        sa.Column("sealed_by", sa.String(16), nullable=False, server_default=""),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("key_set_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_stored_providers"),
    )


def _create_erasures() -> None:
    op.create_table(
        "erasures",
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("requested_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("finished_at_ms", sa.BigInteger(), nullable=True),
        sa.Column("due_at_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("user_id", name="pk_erasures"),
    )
    for name in ("due_at_ms", "finished_at_ms"):
        op.create_index(f"ix_erasures_{name}", "erasures", [name])
    op.create_table(
        "erased_items",
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("items", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "kind", name="pk_erased_items"),
        sa.ForeignKeyConstraint(["user_id"], ["erasures.user_id"], name="fk_erased_items_user_id"),
    )
