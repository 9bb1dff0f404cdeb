"""The tables of facts about users."""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    String,
    Table,
    Text,
    text,
)

from services.common.database import metadata
from services.memory.profile.facts import MAX_TOPIC

_LIVE = text("superseded_by IS NULL")

# Of the facts with one topic and sub-topic each is superseded by the next, in the order in which
# they were last said; `place` orders those of one time.
facts = Table(
    "memory_facts",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("owner_id", String(64), nullable=False),
    Column("topic", String(MAX_TOPIC), nullable=False),
    Column("sub_topic", String(MAX_TOPIC), nullable=False),
    Column("value", Text, nullable=False),
    Column("updated_at_ms", BigInteger, nullable=False),
    Column("place", BigInteger, nullable=False),
    Column("superseded_by", String(64)),
    Index(
        "ix_memory_facts_live",
        "owner_id",
        "topic",
        "sub_topic",
        unique=True,
        sqlite_where=_LIVE,
    ),
    Index("ix_memory_facts_owner_id", "owner_id", "topic", "sub_topic"),
)

# The turns in which facts were said; "" and 0 outside of any memory.
sources = Table(
    "memory_fact_sources",
    metadata,
    Column("fact_id", String(64), ForeignKey("memory_facts.id"), primary_key=True),
    Column("entity_id", String(64), primary_key=True),
    Column("turn", BigInteger, primary_key=True, autoincrement=False),
    Column("at_ms", BigInteger, nullable=False),
    Index("ix_memory_fact_sources_entity_id", "entity_id", "turn"),
)
