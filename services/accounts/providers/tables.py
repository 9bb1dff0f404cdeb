"""Table of the providers that administrators store."""

from sqlalchemy import BigInteger, Column, LargeBinary, String, Table

from services.common.storage.database import metadata

stored_providers = Table(
    "stored_providers",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("base_url", String(2048), nullable=False),
    # The encrypted key, and the id of the key of the settings that encrypted it; NULL and "" for a
    # provider without a key.
    Column("sealed_key", LargeBinary),
    Column("sealed_by", String(16), nullable=False, server_default=""),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("key_set_at_ms", BigInteger, nullable=False),
)
