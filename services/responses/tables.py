"""The tables of stored responses.

A response belongs to an owner of memories, and its size is counted with the owner's memories.
`response_id` is the id that the owner sees; `id` is internal and never reused.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    LargeBinary,
    String,
    Table,
    UniqueConstraint,
    text,
)

from services.common.storage.database import metadata
from services.common.storage.owners import owners

_IS_RUNNING = text("holder <> ''")

# `holder` and `ends_at_ms` are the lease of the process that generates a response, "" and 0
# otherwise. The previous response may have been deleted.
responses = Table(
    "responses",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("owner_id", String(64), ForeignKey(owners.c.owner_id), nullable=False),
    Column("response_id", String(64), nullable=False),
    Column("previous_id", String(64), nullable=False),
    Column("state", String(16), nullable=False),
    Column("background", Boolean, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("expires_at_ms", BigInteger, nullable=False),
    Column("holder", String(64), nullable=False),
    Column("ends_at_ms", BigInteger, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    UniqueConstraint("owner_id", "response_id"),
    Index("ix_responses_expires_at_ms", "expires_at_ms"),
    Index("ix_responses_ends_at_ms", "ends_at_ms", sqlite_where=_IS_RUNNING),
)

# Separate from the responses, so that renewing a lease or an expiry does not rewrite the contents.
# `input` and `output` are serialized gateway.memory.v1.ResponseItems: concatenated, several of them
# parse as one message with all their items.
contents = Table(
    "response_contents",
    metadata,
    Column("id", String(64), ForeignKey("responses.id"), primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("input", LargeBinary, nullable=False),
    Column("output", LargeBinary, nullable=False),
    Column("events", LargeBinary, nullable=False),
)

# The ids of output items, to find their responses.
output_items = Table(
    "response_items",
    metadata,
    Column("id", String(64), ForeignKey("responses.id"), primary_key=True),
    Column("item_id", String(128), primary_key=True),
    Column("owner_id", String(64), nullable=False),
    Index("ix_response_items_owner_id", "owner_id", "item_id"),
)
