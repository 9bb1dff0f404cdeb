"""Documents with their logs, sessions, groups, sizes, requests and files, and grants."""

import sqlalchemy as sa
from alembic import op


def create() -> None:
    """Create the tables."""
    _create_groups()
    _create_articles()
    _create_sessions()
    _create_usage()
    _create_requests()
    _create_comments()


def _create_groups() -> None:
    op.create_table(
        "article_groups",
        sa.Column("id", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("creator_id", sa.String(64), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_article_groups"),
    )
    op.create_index("ix_article_groups_creator_id", "article_groups", ["creator_id"])
    op.create_table(
        "article_group_members",
        sa.Column("group_id", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("added_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("group_id", "user_id", name="pk_article_group_members"),
        sa.ForeignKeyConstraint(
            ["group_id"], ["article_groups.id"], name="fk_article_group_members_group_id"
        ),
    )
    op.create_index("ix_article_group_members_user_id", "article_group_members", ["user_id"])
    op.create_table(
        "grants",
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("given_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "name", name="pk_grants"),
    )


def _create_articles() -> None:
    op.create_table(
        "articles",
        sa.Column("id", sa.String(20), nullable=False),
        sa.Column("group_id", sa.BigInteger()),
        sa.Column("creator_id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("permission", sa.String(16), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at_ms", sa.BigInteger()),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("charged_bytes", sa.BigInteger(), nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("id", name="pk_articles"),
        sa.ForeignKeyConstraint(["group_id"], ["article_groups.id"], name="fk_articles_group_id"),
        sa.CheckConstraint(
            "permission IN ('private', 'group-only')", name="ck_articles_permission"
        ),
    )
    for column in ("creator_id", "group_id", "deleted_at_ms"):
        op.create_index(f"ix_articles_{column}", "articles", [column])
    op.create_table(
        "article_operations",
        sa.Column("article_id", sa.String(20), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("client_id", sa.String(64), nullable=False, server_default=""),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("operation", sa.LargeBinary(), nullable=False),
        sa.Column("inverse", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("article_id", "revision", name="pk_article_operations"),
        sa.ForeignKeyConstraint(
            ["article_id"], ["articles.id"], name="fk_article_operations_article_id"
        ),
    )
    op.create_table(
        "article_snapshots",
        sa.Column("article_id", sa.String(20), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("log_bytes", sa.BigInteger(), nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("article_id", name="pk_article_snapshots"),
        sa.ForeignKeyConstraint(
            ["article_id"], ["articles.id"], name="fk_article_snapshots_article_id"
        ),
    )


def _create_sessions() -> None:
    op.create_table(
        "article_sessions",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("article_id", sa.String(20), nullable=False),
        sa.Column("client_id", sa.String(64), nullable=False, server_default=""),
        sa.Column("latest", sa.Boolean(), nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_article_sessions"),
        sa.ForeignKeyConstraint(
            ["article_id"], ["articles.id"], name="fk_article_sessions_article_id"
        ),
    )
    op.create_index(
        "ix_article_sessions_latest",
        "article_sessions",
        ["user_id", "article_id", "client_id"],
        unique=True,
        sqlite_where=sa.text("latest"),
        postgresql_where=sa.text("latest"),
    )
    op.create_index("ix_article_sessions_article_id", "article_sessions", ["article_id"])
    op.create_index("ix_article_sessions_expires_at_ms", "article_sessions", ["expires_at_ms"])
    op.create_index("ix_article_sessions_user_id", "article_sessions", ["user_id"])


def _create_usage() -> None:
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


def _create_requests() -> None:
    op.create_table(
        "article_requests",
        sa.Column("article_id", sa.String(20), nullable=False),
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("answer", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("article_id", "user_id", "request_id", name="pk_article_requests"),
        sa.ForeignKeyConstraint(
            ["article_id"], ["articles.id"], name="fk_article_requests_article_id"
        ),
    )
    op.create_index(
        "ix_article_requests_user_id", "article_requests", ["user_id", "article_id", "at_ms"]
    )
    op.create_index("ix_article_requests_at_ms", "article_requests", ["at_ms"])
    op.create_table(
        "article_files",
        sa.Column("article_id", sa.String(20), nullable=False),
        sa.Column("file_id", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("article_id", "file_id", name="pk_article_files"),
    )
    op.create_index("ix_article_files_file_id", "article_files", ["file_id"])


def _create_comments() -> None:
    op.create_table(
        "article_comments",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("article_id", sa.String(20), nullable=False),
        sa.Column("thread_id", sa.String(64), nullable=False),
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("edited_at_ms", sa.BigInteger()),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("element_id", sa.String(64), nullable=False, server_default=""),
        sa.Column("anchor", sa.LargeBinary()),
        sa.Column("resolved_at_ms", sa.BigInteger()),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_article_comments"),
        sa.ForeignKeyConstraint(
            ["article_id"], ["articles.id"], name="fk_article_comments_article_id"
        ),
    )
    op.create_index("ix_article_comments_article_id", "article_comments", ["article_id", "id"])
    op.create_index("ix_article_comments_thread_id", "article_comments", ["thread_id"])
    op.create_index("ix_article_comments_user_id", "article_comments", ["user_id"])
    op.create_table(
        "article_suggestions",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("article_id", sa.String(20), nullable=False),
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("patch", sa.LargeBinary(), nullable=False),
        sa.Column("edit", sa.LargeBinary()),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_article_suggestions"),
        sa.ForeignKeyConstraint(
            ["article_id"], ["articles.id"], name="fk_article_suggestions_article_id"
        ),
    )
    op.create_index(
        "ix_article_suggestions_article_id", "article_suggestions", ["article_id", "id"]
    )
    op.create_index("ix_article_suggestions_user_id", "article_suggestions", ["user_id"])
    op.create_table(
        "article_suggested_files",
        sa.Column("suggestion_id", sa.String(64), nullable=False),
        sa.Column("file_id", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("suggestion_id", "file_id", name="pk_article_suggested_files"),
        sa.ForeignKeyConstraint(
            ["suggestion_id"],
            ["article_suggestions.id"],
            name="fk_article_suggested_files_suggestion_id",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_article_suggested_files_file_id", "article_suggested_files", ["file_id"])
