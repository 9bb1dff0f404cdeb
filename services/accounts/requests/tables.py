"""The table of the request log, without any bodies."""

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    String,
    Table,
    Text,
)

from services.common.storage.database import metadata

request_log = Table(
    "request_log",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("time_ms", BigInteger, nullable=False),
    Column("request_id", String(128), nullable=False),
    Column("user_id", String(64), nullable=False),
    Column("team_id", String(64), nullable=False),
    Column("key_id", String(64), nullable=False),
    Column("endpoint", String(256), nullable=False),
    Column("status", SmallInteger, nullable=False),
    Column("error_code", String(64), nullable=False),
    Column("requested_model", String(512), nullable=False),
    Column("model", String(512), nullable=False),
    Column("provider", String(256), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("duration_ms", BigInteger, nullable=False),
    Column("first_content_ms", BigInteger),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cost_pusd", BigInteger),
    Column("has_bodies", SmallInteger, nullable=False),
    # What the filter by text searches, with case folded.
    Column("search_text", Text, nullable=False),
    # A serialized `RequestDetails`.
    Column("details", LargeBinary),
    Index(None, "user_id", "id"),
    Index(None, "key_id", "id"),
    Index(None, "request_id", "id"),
)

# The tags and the end user of entries; a row for each.
request_log_labels = Table(
    "request_log_labels",
    metadata,
    Column("entry_id", String(64), primary_key=True),
    Column("label", String(32), primary_key=True),
    Column("value", String(64), nullable=False),
    Index("ix_request_log_labels_label_value_entry_id", "label", "value", "entry_id"),
)
