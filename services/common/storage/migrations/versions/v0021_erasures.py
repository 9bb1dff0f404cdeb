"""Erasures of users' data, and an index of the conversations of a user."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0019"

_ERASURES = "erasures"
_COUNTS = "erased_items"
_INDEX = "ix_conversations_owner_id"


def upgrade() -> None:
    """Make the tables and the index."""
    op.create_table(
        _ERASURES,
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("requested_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("finished_at_ms", sa.BigInteger(), nullable=True),
        sa.Column("due_at_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("user_id", name=f"pk_{_ERASURES}"),
    )
    op.create_index(f"ix_{_ERASURES}_due_at_ms", _ERASURES, ["due_at_ms"])
    op.create_table(
        _COUNTS,
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("items", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "kind", name=f"pk_{_COUNTS}"),
        sa.ForeignKeyConstraint(
            ["user_id"], [f"{_ERASURES}.user_id"], name=f"fk_{_COUNTS}_user_id"
        ),
    )
    op.create_index(_INDEX, "conversations", ["owner_id"])


def downgrade() -> None:
    """Take them away."""
    op.drop_index(_INDEX, "conversations")
    op.drop_table(_COUNTS)
    op.drop_table(_ERASURES)
