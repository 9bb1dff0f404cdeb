"""The tables of stored conversations.

A conversation belongs to an owner of memories; its size is counted with the owner's memories and
responses.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    LargeBinary,
    String,
    Table,
    UniqueConstraint,
)

from services.common.storage.database import metadata
from services.common.storage.owners import owners

# `last_position` is the position of the item that was appended last, even if it has been deleted.
# `size_bytes` includes the items.
conversations = Table(
    "conversations",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("owner_id", String(64), ForeignKey(owners.c.owner_id), nullable=False),
    Column("notes", LargeBinary, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("expires_at_ms", BigInteger, nullable=False),
    Column("item_count", BigInteger, nullable=False),
    Column("last_position", BigInteger, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Index("ix_conversations_expires_at_ms", "expires_at_ms"),
    # The latest change expires last, which is the order of an owner's list.
    Index("ix_conversations_owner_id", "owner_id", "expires_at_ms", "id"),
)

items = Table(
    "conversation_items",
    metadata,
    Column("conversation_id", String(64), ForeignKey(conversations.c.id), primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("item_id", String(128), nullable=False),
    Column("json", LargeBinary, nullable=False),
    UniqueConstraint("conversation_id", "item_id"),
)

# The conversation of a response, and the position of the last item that the response was generated
# from. The conversation may have been deleted. Rows are deleted with their responses by cascade,
# since workers of the previous version delete only the responses.
origins = Table(
    "response_origins",
    metadata,
    Column("id", String(64), ForeignKey("responses.id", ondelete="CASCADE"), primary_key=True),
    Column("conversation_id", String(64), nullable=False),
    Column("last_position", BigInteger, nullable=False),
)
