"""Tables of the storage that documents and memories take up, by owner."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

# What is charged for a document and for a memory's part beside their content. These numbers
# are those of the day of this step; the services have their own.
_DOCUMENT, _OPERATION, _PART, _MESSAGE = 1024, 256, 512, 64


def upgrade() -> None:
    """Add the counters, and count what is there."""
    length = "octet_length" if op.get_bind().dialect.name == "postgresql" else "length"
    _count_articles(length)
    _count_memories(length)
    op.create_index("ix_article_sessions_user_id", "article_sessions", ["user_id"])


def _count_articles(length: str) -> None:
    op.create_table(
        "article_usage",
        sa.Column("owner_id", sa.String(64), nullable=False),
        sa.Column("plan", sa.String(32), nullable=False),
        sa.Column("documents", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("deleted_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner_id", name="pk_article_usage"),
        sa.CheckConstraint("documents >= 0", name="ck_article_usage_documents"),
        sa.CheckConstraint("size_bytes >= 0", name="ck_article_usage_size_bytes"),
        sa.CheckConstraint("deleted_bytes >= 0", name="ck_article_usage_deleted_bytes"),
    )
    for table, column in (
        ("articles", "size_bytes"),
        ("articles", "charged_bytes"),
        ("article_snapshots", "log_bytes"),
    ):
        op.add_column(table, sa.Column(column, sa.BigInteger(), nullable=False, server_default="0"))
    logged = f"SELECT sum({length}(o.operation) + {length}(o.inverse) + {_OPERATION})"
    op.execute(
        f"""
        UPDATE articles SET charged_bytes = coalesce((
            {logged} FROM article_operations o WHERE o.article_id = articles.id), 0)
        """
    )
    op.execute(f"UPDATE articles SET size_bytes = {_DOCUMENT} + charged_bytes")
    op.execute(
        f"""
        UPDATE article_snapshots SET log_bytes = coalesce((
            {logged} FROM article_operations o
            WHERE o.article_id = article_snapshots.article_id
            AND o.revision <= article_snapshots.revision), 0)
        """
    )
    op.execute(
        """
        INSERT INTO article_usage (owner_id, plan, documents, size_bytes, deleted_bytes)
        SELECT a.creator_id, coalesce(max(t.plan), max(u.plan), 'personal_free'),
            sum(CASE WHEN a.deleted_at_ms IS NULL THEN 1 ELSE 0 END),
            sum(CASE WHEN a.deleted_at_ms IS NULL THEN a.size_bytes ELSE 0 END),
            sum(CASE WHEN a.deleted_at_ms IS NULL THEN 0 ELSE a.size_bytes END)
        FROM articles a
        LEFT JOIN users u ON u.id = a.creator_id
        LEFT JOIN teams t ON t.id = u.team_id
        GROUP BY a.creator_id
        """
    )


def _count_memories(length: str) -> None:
    for table in ("memories", "memory_owners"):
        op.add_column(
            table, sa.Column("size_bytes", sa.BigInteger(), nullable=False, server_default="0")
        )
    op.execute(
        f"""
        UPDATE memories SET size_bytes = coalesce((
            SELECT sum(2 * {length}(p.content) + {_MESSAGE} * p.messages + {_PART})
            FROM memory_parts p WHERE p.entity_id = memories.id), 0)
        """
    )
    op.execute(
        """
        UPDATE memory_owners SET size_bytes = coalesce((
            SELECT sum(m.size_bytes) FROM memories m
            WHERE m.owner_id = memory_owners.owner_id), 0)
        """
    )
