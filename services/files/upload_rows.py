"""Rows of uploads in parts, and their tables."""

from typing import Any, Final, NamedTuple, Self

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Row,
    String,
    Table,
)

from services.common.storage.database import metadata
from services.files.repository import PURPOSE_CHECK

PENDING: Final = "pending"
COMPLETED: Final = "completed"
CANCELLED: Final = "cancelled"

uploads = Table(
    "uploads",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("owner_id", String(64), ForeignKey("file_usage.owner_id"), nullable=False),
    Column(
        "status",
        String(16),
        CheckConstraint("status IN ('pending', 'completed', 'cancelled')", name="status"),
        nullable=False,
    ),
    Column("filename", String(255), nullable=False),
    Column("purpose", String(16), CheckConstraint(PURPOSE_CHECK, name="purpose"), nullable=False),
    Column("mime_type", String(255), nullable=False),
    # Unknown if null.
    Column("size_bytes", BigInteger),
    # Of the file, from the completion on.
    Column("lifetime_s", BigInteger, nullable=False),
    Column("received_bytes", BigInteger, nullable=False),
    Column("parts", Integer, nullable=False),
    Column("created_at_s", BigInteger, nullable=False),
    Column("expires_at_s", BigInteger, nullable=False),
    # Of a completed upload: its file, and the digest of the ids of the parts in their order.
    Column("file_id", String(64)),
    Column("order_sha256", String(64)),
    # Of protocols; see `CreateUploadRequest`.
    Column("key_share", LargeBinary),
    Column("metadata", String(4096)),
    Index("ix_uploads_owner_id", "owner_id"),
    Index("ix_uploads_expires_at_s", "expires_at_s"),
)

upload_parts = Table(
    "upload_parts",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("upload_id", String(64), ForeignKey("uploads.id"), nullable=False),
    # The number of bytes that were received before it.
    Column("first_byte", BigInteger, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Index("ix_upload_parts_upload_id", "upload_id", "first_byte"),
)


class StoredUpload(NamedTuple):
    """The row of an upload; see `uploads`."""

    id: str
    owner_id: str
    status: str
    filename: str
    purpose: str
    mime_type: str
    size_bytes: int | None
    lifetime_s: int
    received_bytes: int
    parts: int
    created_at_s: int
    expires_at_s: int
    file_id: str | None = None
    order_sha256: str | None = None
    key_share: bytes | None = None
    metadata: str | None = None

    @classmethod
    def of(cls, row: Row[Any]) -> Self:
        """Return the upload of a row with all columns."""
        return cls(**row._mapping)


class StoredPart(NamedTuple):
    """The row of a part."""

    id: str
    size_bytes: int
