"""Files, uploads in parts, how much each owner stores, and leases."""

import sqlalchemy as sa
from alembic import op


def create() -> None:
    """Create the tables."""
    op.create_table(
        "leases",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("holder", sa.String(64), nullable=False),
        sa.Column("ends_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
    )
    op.create_table(
        "file_usage",
        sa.Column("owner_id", sa.String(64), nullable=False),
        sa.Column("files", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("uploads", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("owner_id", name="pk_file_usage"),
        sa.CheckConstraint("files >= 0", name="ck_file_usage_files"),
        sa.CheckConstraint("size_bytes >= 0", name="ck_file_usage_size_bytes"),
        sa.CheckConstraint("uploads >= 0", name="ck_file_usage_uploads"),
    )
    op.create_table(
        "files",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("owner_id", sa.String(64), nullable=False),
        sa.Column("filename", sa.String(255), nullable=False),
        sa.Column("purpose", sa.String(16), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("mime_type", sa.String(255), nullable=False),
        sa.Column("created_at_s", sa.BigInteger(), nullable=False),
        sa.Column("expires_at_s", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_files"),
        sa.ForeignKeyConstraint(["owner_id"], ["file_usage.owner_id"], name="fk_files_owner_id"),
        sa.CheckConstraint(
            "purpose IN ('assistants', 'batch', 'fine_tune', 'vision', 'user_data', 'evals', "
            "'batch_output')",
            name="ck_files_purpose",
        ),
    )
    op.create_index("ix_files_owner_id", "files", ["owner_id", "created_at_s", "id"])
    op.create_index(
        "ix_files_owner_id_purpose", "files", ["owner_id", "purpose", "created_at_s", "id"]
    )
    op.create_index("ix_files_expires_at_s", "files", ["expires_at_s"])
    _create_uploads()


def _create_uploads() -> None:
    op.create_table(
        "uploads",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("owner_id", sa.String(64), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("filename", sa.String(255), nullable=False),
        sa.Column("purpose", sa.String(16), nullable=False),
        sa.Column("mime_type", sa.String(255), nullable=False),
        sa.Column("size_bytes", sa.BigInteger()),
        sa.Column("lifetime_s", sa.BigInteger(), nullable=False),
        sa.Column("received_bytes", sa.BigInteger(), nullable=False),
        sa.Column("parts", sa.Integer(), nullable=False),
        sa.Column("created_at_s", sa.BigInteger(), nullable=False),
        sa.Column("expires_at_s", sa.BigInteger(), nullable=False),
        sa.Column("file_id", sa.String(64)),
        sa.Column("order_sha256", sa.String(64)),
        sa.Column("key_share", sa.LargeBinary()),
        sa.Column("metadata", sa.String(4096)),
        sa.PrimaryKeyConstraint("id", name="pk_uploads"),
        sa.ForeignKeyConstraint(["owner_id"], ["file_usage.owner_id"], name="fk_uploads_owner_id"),
        sa.CheckConstraint(
            "status IN ('pending', 'completed', 'cancelled')", name="ck_uploads_status"
        ),
        sa.CheckConstraint(
            "purpose IN ('assistants', 'batch', 'fine_tune', 'vision', 'user_data', 'evals')",
            name="ck_uploads_purpose",
        ),
    )
    op.create_index("ix_uploads_owner_id", "uploads", ["owner_id"])
    op.create_index("ix_uploads_expires_at_s", "uploads", ["expires_at_s"])
    op.create_table(
        "upload_parts",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("upload_id", sa.String(64), nullable=False),
        sa.Column("first_byte", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_upload_parts"),
        sa.ForeignKeyConstraint(["upload_id"], ["uploads.id"], name="fk_upload_parts_upload_id"),
    )
    op.create_index("ix_upload_parts_upload_id", "upload_parts", ["upload_id", "first_byte"])
