"""The tables of erasures, and of what they have removed."""

from sqlalchemy import BigInteger, Column, ForeignKey, String, Table

from services.common.storage.database import metadata

# `due_at_ms` is the time of the next pass; NULL after the last one.
erasures = Table(
    "erasures",
    metadata,
    Column("user_id", String(64), primary_key=True),
    Column("requested_at_ms", BigInteger, nullable=False),
    Column("finished_at_ms", BigInteger, index=True),
    Column("due_at_ms", BigInteger, index=True),
)

erased_items = Table(
    "erased_items",
    metadata,
    Column("user_id", String(64), ForeignKey("erasures.user_id"), primary_key=True),
    Column("kind", String(32), primary_key=True),
    Column("items", BigInteger, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
)
