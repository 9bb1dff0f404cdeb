"""The tables of stored responses.

A response belongs to an owner of memories, who chose its `response_id`; `id` is never used again.
What it takes up is counted with the owner's memories.
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

from services.common.database import metadata
from services.common.owners import owners

_IS_RUNNING = text("holder <> ''")

# `holder` and `ends_at_ms` are the lease of whoever generates a response, and empty otherwise. The
# previous response may be gone.
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

# Apart from their responses, so that to renew a lease or a time to live writes nothing else.
# `input` and `output` are serialized gateway.memory.v1.ResponseItems: the bytes of several, one
# after the other, are those of all their items.
contents = Table(
    "response_contents",
    metadata,
    Column("id", String(64), ForeignKey("responses.id"), primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("input", LargeBinary, nullable=False),
    Column("output", LargeBinary, nullable=False),
    Column("events", LargeBinary, nullable=False),
)

# The items of outputs, to be found by their ids.
output_items = Table(
    "response_items",
    metadata,
    Column("id", String(64), ForeignKey("responses.id"), primary_key=True),
    Column("item_id", String(128), primary_key=True),
    Column("owner_id", String(64), nullable=False),
    Index("ix_response_items_owner_id", "owner_id", "item_id"),
)
