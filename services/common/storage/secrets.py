"""The gateway's own secrets: generated once, stored in the database, shared by all processes.

A secret has a name and one or more keys with ids. The newest key of a name is in use; older keys
continue to verify their signatures.
"""

import secrets as randomness
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import (
    BigInteger,
    Column,
    LargeBinary,
    PrimaryKeyConstraint,
    String,
    Table,
    insert,
    select,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common import ids
from services.common.clock import Clock
from services.common.storage.database import metadata, reading, writing_alone

# Signs thinking blocks of providers that do not sign them: HMAC key, 32 bytes.
SIGNING = "thinking_signature"
# Authenticates background work at Inference, which has no caller's API key: 32 bytes.
SERVICE = "service_credential"
NAMES = (SIGNING, SERVICE)

_SIZE = 32

table = Table(
    "secrets",
    metadata,
    Column("name", String(64), nullable=False),
    Column("key_id", String(64), nullable=False),
    Column("value", LargeBinary, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    PrimaryKeyConstraint("name", "key_id"),
)


@dataclass(frozen=True, slots=True)
class Secrets:
    """Secrets shared by the processes of one gateway. The repr contains no secret.

    Attributes:
        signing_keys: HMAC keys of 32 bytes by id; all of them verify signatures.
        current_signing_key: id of the key that signs.
        service_credential: authenticates background work at Inference, 32 bytes.
    """

    signing_keys: Mapping[str, bytes] = field(repr=False)
    current_signing_key: str
    service_credential: bytes = field(repr=False)


async def load_secrets(
    engine: AsyncEngine,
    clock: Clock | None = None,
    random_bytes: Callable[[int], bytes] = randomness.token_bytes,
    *,
    new_id: ids.IdGenerator = ids.new_id,
) -> Secrets:
    """Read the secrets of a migrated database; missing ones are created first.

    Any number of processes may call it at once: all get the same secrets.

    Raises:
        GatewayError: unavailable, when the database does not answer.
    """
    clock = clock or Clock()
    async with reading(engine) as connection:
        stored_keys = await _read(connection)
    if any(not stored_keys[name] for name in NAMES):
        async with writing_alone(engine) as connection:
            stored_keys = await _read(connection)
            for name in NAMES:
                if not stored_keys[name]:
                    stored_keys[name] = {new_id("key_"): random_bytes(_SIZE)}
                    await _write(connection, name, stored_keys[name], int(clock.now() * 1000))
    return Secrets(
        signing_keys=stored_keys[SIGNING],
        current_signing_key=next(reversed(stored_keys[SIGNING])),
        service_credential=next(reversed(stored_keys[SERVICE].values())),
    )


async def _read(connection: AsyncConnection) -> dict[str, dict[str, bytes]]:
    """Return the keys of each name, oldest first."""
    keys: dict[str, dict[str, bytes]] = {name: {} for name in NAMES}
    query = select(table).where(table.c.name.in_(NAMES))
    for row in await connection.execute(query.order_by(table.c.created_at_ms, table.c.key_id)):
        keys[row.name][row.key_id] = row.value
    return keys


async def _write(
    connection: AsyncConnection, name: str, keys: Mapping[str, bytes], now_ms: int
) -> None:
    await connection.execute(
        insert(table),
        [
            {"name": name, "key_id": key_id, "value": value, "created_at_ms": now_ms}
            for key_id, value in keys.items()
        ],
    )
