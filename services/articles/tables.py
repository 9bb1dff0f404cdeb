"""The tables of documents: groups, usage, the log of each document, its snapshot, its sessions."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    LargeBinary,
    String,
    Table,
    Text,
    text,
)

from services.common.storage.database import metadata

PRIVATE = "private"
GROUP_ONLY = "group-only"
PERMISSIONS = (PRIVATE, GROUP_ONLY)

MAX_NAME = 200

groups = Table(
    "article_groups",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("name", String(MAX_NAME), nullable=False),
    Column("creator_id", String(64), nullable=False, index=True),
    Column("created_at_ms", BigInteger, nullable=False),
)

members = Table(
    "article_group_members",
    metadata,
    Column("group_id", BigInteger, ForeignKey("article_groups.id"), primary_key=True),
    Column("user_id", String(64), primary_key=True),
    Column("added_at_ms", BigInteger, nullable=False),
    Index("ix_article_group_members_user_id", "user_id"),
)

# Rights of a user beyond those of every user.
grants = Table(
    "grants",
    metadata,
    Column("user_id", String(64), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("given_at_ms", BigInteger, nullable=False),
)

# Number and size of each owner's documents: see `usage`. Every user who has created a document has
# a row.
usage = Table(
    "article_usage",
    metadata,
    Column("owner_id", String(64), primary_key=True),
    Column("plan", String(32), nullable=False),
    Column(
        "documents", BigInteger, CheckConstraint("documents >= 0", name="documents"), nullable=False
    ),
    Column(
        "size_bytes",
        BigInteger,
        CheckConstraint("size_bytes >= 0", name="size_bytes"),
        nullable=False,
    ),
    Column(
        "deleted_bytes",
        BigInteger,
        CheckConstraint("deleted_bytes >= 0", name="deleted_bytes"),
        nullable=False,
    ),
)

# A document without a group is in its creator's private group. `size_bytes` is charged to its
# owner; `charged_bytes` counts the bytes charged for its log, removed operations included: see
# `usage`.
articles = Table(
    "articles",
    metadata,
    Column("id", String(20), primary_key=True),
    Column("group_id", BigInteger, ForeignKey("article_groups.id")),
    Column("creator_id", String(64), nullable=False),
    Column("name", String(MAX_NAME), nullable=False),
    Column(
        "permission",
        String(16),
        CheckConstraint(f"permission IN ({', '.join(map(repr, PERMISSIONS))})", name="permission"),
        nullable=False,
    ),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("deleted_at_ms", BigInteger),
    Column("size_bytes", BigInteger, nullable=False),
    Column("charged_bytes", BigInteger, nullable=False),
    Index("ix_articles_creator_id", "creator_id"),
    Index("ix_articles_group_id", "group_id"),
    Index("ix_articles_deleted_at_ms", "deleted_at_ms"),
)

# Each operation with its inverse, as JSON, and the client of the user's that made it ("" if it did
# not name itself). The primary key decides a race for a revision.
operations = Table(
    "article_operations",
    metadata,
    Column("article_id", String(20), ForeignKey("articles.id"), primary_key=True),
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    Column("user_id", String(64), nullable=False),
    Column("client_id", String(64), nullable=False, server_default=""),
    Column("at_ms", BigInteger, nullable=False),
    Column("operation", LargeBinary, nullable=False),
    Column("inverse", LargeBinary, nullable=False),
)

# The newest snapshot of each document that has one: its state after `revision` operations, which
# have a total size of `log_bytes`.
snapshots = Table(
    "article_snapshots",
    metadata,
    Column("article_id", String(20), ForeignKey("articles.id"), primary_key=True),
    Column("revision", BigInteger, nullable=False),
    # Compressed; `size_bytes` is the size before that.
    Column("content", LargeBinary, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("log_bytes", BigInteger, nullable=False),
)

# A session is `latest` until a call finds it expired. Expired sessions are kept for a while, so
# that callers get the error of an expired session.
sessions = Table(
    "article_sessions",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("user_id", String(64), nullable=False),
    Column("article_id", String(20), ForeignKey("articles.id"), nullable=False),
    # The client of the user's that the session is for; "" for all that do not name themselves.
    Column("client_id", String(64), nullable=False, server_default=""),
    Column("latest", Boolean, nullable=False),
    Column("expires_at_ms", BigInteger, nullable=False),
    Index(
        "ix_article_sessions_latest",
        "user_id",
        "article_id",
        "client_id",
        unique=True,
        sqlite_where=text("latest"),
    ),
    Index("ix_article_sessions_article_id", "article_id"),
    Index("ix_article_sessions_user_id", "user_id"),
    Index("ix_article_sessions_expires_at_ms", "expires_at_ms"),
)

# Comments, and the replies to them, which have the id of the first comment as `thread_id`. Only
# that one has an element, an anchor (JSON, if it is on a passage), and may be resolved. An erased
# author is "".
comments = Table(
    "article_comments",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("article_id", String(20), ForeignKey("articles.id"), nullable=False),
    Column("thread_id", String(64), nullable=False),
    Column("user_id", String(64), nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("edited_at_ms", BigInteger),
    Column("text", Text, nullable=False),
    Column("element_id", String(64), nullable=False, server_default=""),
    Column("anchor", LargeBinary),
    Column("resolved_at_ms", BigInteger),
    Column("size_bytes", BigInteger, nullable=False),
    Index("ix_article_comments_article_id", "article_id", "id"),
    Index("ix_article_comments_thread_id", "thread_id"),
    Index("ix_article_comments_user_id", "user_id"),
)

# Pending edits, each as the change of blocks that it makes (JSON); see `tree.block_patches`. `kind`
# is the field of `Edit`; `edit` its message, if it can be made again on blocks that have changed.
suggestions = Table(
    "article_suggestions",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("article_id", String(20), ForeignKey("articles.id"), nullable=False),
    Column("user_id", String(64), nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("patch", LargeBinary, nullable=False),
    Column("edit", LargeBinary),
    Column("size_bytes", BigInteger, nullable=False),
    Index("ix_article_suggestions_article_id", "article_id", "id"),
    Index("ix_article_suggestions_user_id", "user_id"),
)

# Requests with an id of their caller's, and their answers: see `repeats`.
requests = Table(
    "article_requests",
    metadata,
    Column("article_id", String(20), ForeignKey("articles.id"), primary_key=True),
    Column("user_id", String(64), primary_key=True),
    Column("request_id", String(64), primary_key=True),
    Column("at_ms", BigInteger, nullable=False),
    Column("fingerprint", LargeBinary, nullable=False),
    Column("answer", LargeBinary, nullable=False),
    Index("ix_article_requests_user_id", "user_id", "article_id", "at_ms"),
    Index("ix_article_requests_at_ms", "at_ms"),
)
