"""Table of the sessions of the console."""

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, LargeBinary, String, Table

from services.accounts.tables import IS_ROLE
from services.common.storage.database import metadata

sessions = Table(
    "console_sessions",
    metadata,
    Column("id", String(64), primary_key=True),
    # SHA-256 of the token.
    Column("hash", LargeBinary(32), nullable=False, unique=True),
    Column("key_id", String(64), ForeignKey("api_keys.id"), nullable=False, index=True),
    # The role by the way of the sign-in, which nobody changes; NULL if that of the user counts.
    Column("role", String(16), CheckConstraint(IS_ROLE, name="role")),
    # How the person signed in: link, key or oidc.
    Column("method", String(16), nullable=False),
    # The admin key that unlocked administration, or "".
    Column("admin_key_id", String(64), nullable=False, server_default=""),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("used_at_ms", BigInteger, nullable=False),
    Column("ends_at_ms", BigInteger, nullable=False, index=True),
)
