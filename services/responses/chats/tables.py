"""The tables of stored chat completions.

A chat completion belongs to an owner of memories; its size is counted with the owner's memories and
responses.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
)

from services.common.storage.database import metadata
from services.common.storage.owners import owners

# `labels` is the caller's metadata as JSON with sorted keys.
chats = Table(
    "chat_completions",
    metadata,
    Column("owner_id", String(64), ForeignKey(owners.c.owner_id), nullable=False),
    Column("id", String(64), nullable=False),
    Column("model", String(256), nullable=False),
    Column("labels", Text, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("expires_at_ms", BigInteger, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    PrimaryKeyConstraint("owner_id", "id"),
    Index("ix_chat_completions_created", "owner_id", "created_at_ms", "id"),
    Index(None, "expires_at_ms"),
)
chat_contents = Table(
    "chat_completion_contents",
    metadata,
    Column("owner_id", String(64), nullable=False),
    Column("id", String(64), nullable=False),
    Column("completion", LargeBinary, nullable=False),
    Column("messages", LargeBinary, nullable=False),
    PrimaryKeyConstraint("owner_id", "id"),
    ForeignKeyConstraint(["owner_id", "id"], [chats.c.owner_id, chats.c.id]),
)
