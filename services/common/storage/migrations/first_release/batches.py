"""Batches: their requests, results and tasks."""

import sqlalchemy as sa
from alembic import op


def create() -> None:
    """Create the tables."""
    _create_batches()
    op.create_table(
        "batch_requests",
        *_numbered(),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("provider_batch_id", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("batch_id", "number", name="pk_batch_requests"),
    )
    op.create_table(
        "batch_results",
        *_numbered(),
        sa.Column("outcome", sa.SmallInteger(), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("request_id", sa.String(128), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("batch_id", "number", name="pk_batch_results"),
    )
    op.create_table(
        "batch_tasks",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("batch_id", sa.String(64), nullable=False),
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("first", sa.Integer(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("provider_batch_id", sa.String(64), nullable=False),
        sa.Column("not_before_ms", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.String(64), nullable=False),
        sa.Column("ends_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("claims", sa.Integer(), nullable=False),
        sa.Column("begun_alone", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_batch_tasks"),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name="fk_batch_tasks_batch_id"),
    )
    op.create_table(
        "provider_batches",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("batch_id", sa.String(64), nullable=False),
        sa.Column("task_id", sa.String(64), nullable=False),
        sa.Column("provider", sa.String(256), nullable=False),
        sa.Column("model", sa.String(1024), nullable=False),
        sa.Column("provider_id", sa.String(256), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_provider_batches"),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name="fk_provider_batches_batch_id"),
    )
    op.create_index("ix_provider_batches_batch_id", "provider_batches", ["batch_id"])
    op.create_index("ix_provider_batches_task_id", "provider_batches", ["task_id"])
    op.create_index("ix_batch_tasks_batch_id", "batch_tasks", ["batch_id"])
    op.create_index("ix_batch_tasks_kind", "batch_tasks", ["kind", "id"])
    op.create_index("ix_batch_tasks_ends_at_ms", "batch_tasks", ["ends_at_ms"])


def _create_batches() -> None:
    op.create_table(
        "batches",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("dialect", sa.SmallInteger(), nullable=False),
        sa.Column("endpoint", sa.String(64), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("input_file_id", sa.String(64), nullable=False),
        sa.Column("output_file_id", sa.String(64), nullable=False),
        sa.Column("error_file_id", sa.String(64), nullable=False),
        sa.Column("output_ttl_s", sa.BigInteger(), nullable=True),
        sa.Column("own_workers", sa.Boolean(), nullable=False),
        *[
            sa.Column(name, sa.LargeBinary(), nullable=False)
            for name in ("metadata", "headers", "errors")
        ],
        *[
            sa.Column(name, sa.Integer(), nullable=False)
            for name in ("total", "succeeded", "errored", "cancelled", "expired")
        ],
        *[
            sa.Column(name, sa.BigInteger(), nullable=False)
            for name in ("input_tokens", "output_tokens", "cached_tokens")
        ],
        *[
            sa.Column(f"{name}_at_ms", sa.BigInteger(), nullable=False)
            for name in (
                *("created", "expires", "started", "finalizing"),
                *("cancelling", "ended", "deleted"),
            )
        ],
        sa.PrimaryKeyConstraint("id", name="pk_batches"),
    )
    op.create_index("ix_batches_user_id", "batches", ["user_id", "dialect", "id"])
    op.create_index("ix_batches_deleted_at_ms", "batches", ["deleted_at_ms"])


def _numbered() -> "list[sa.Column[object]]":
    return [
        sa.Column("batch_id", sa.String(64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("custom_id", sa.String(512), nullable=False),
    ]
