"""The engine of a PostgreSQL server.

Statements are prepared once for each connection. A pooler that gives each transaction another
connection to the server must know them too, as PgBouncer does from 1.21 on; the option
`statement_cache_size=0` of the URL is for one that does not: each statement is then prepared anew.
"""

from typing import Any, NamedTuple

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from services.common.settings import SettingsError
from services.common.storage.disconnects import refuse_closed

POSTGRESQL_SCHEMES = ("postgresql://", "postgres://")
_STATEMENT_CACHE = "statement_cache_size="
_NO_STATEMENT_CACHE = f"{_STATEMENT_CACHE}0"

# Connections that a process keeps open; further ones are closed after use.
_KEPT_CONNECTIONS = 5
_CONNECT_TIMEOUT_S = 5.0
_COMMAND_TIMEOUT_S = 30.0


class PostgreSQLAddress(NamedTuple):
    """Where a server is, and how it is used.

    Attributes:
        url: for the driver, which knows all options of libpq.
        prepares_once: whether statements are prepared once for each connection.
    """

    url: str
    prepares_once: bool


def parse_address(url: str) -> PostgreSQLAddress:
    """Parse `storage.database_url`.

    Raises:
        SettingsError: it is not the URL of a PostgreSQL server.
    """
    if not url.startswith(POSTGRESQL_SCHEMES):
        raise SettingsError(
            "storage.database_url: must be postgresql://user:password@host:port/database; leave "
            "it empty for SQLite (gateway.db in storage.data_dir)"
        )
    address, _, query = url.partition("?")
    options = query.split("&")
    others = [option for option in options if not option.startswith(_STATEMENT_CACHE)]
    if others == options:
        return PostgreSQLAddress(url, True)
    if any(option not in (_NO_STATEMENT_CACHE, *others) for option in options):
        raise SettingsError(
            "storage.database_url: statement_cache_size can only be 0, for a pooler that does not "
            "keep prepared statements; remove it otherwise"
        )
    return PostgreSQLAddress(f"{address}?{'&'.join(others)}" if others else address, False)


async def connect(address: PostgreSQLAddress) -> Any:
    """Return a connection of the driver.

    Raises:
        OSError: the server cannot be reached.
        asyncpg.PostgresError: it refuses the connection.
    """
    import asyncpg

    # A statement without a name is parsed again where it is executed.
    options = {} if address.prepares_once else {"statement_cache_size": 0}
    return await asyncpg.connect(
        address.url, timeout=_CONNECT_TIMEOUT_S, command_timeout=_COMMAND_TIMEOUT_S, **options
    )


def open_postgresql(url: str, connections: int) -> AsyncEngine:
    """Create the engine of a server; it does not connect yet.

    Args:
        url: its address, `storage.database_url`.
        connections: how many may be open.

    Raises:
        SettingsError: as of `parse_address`.
    """
    address = parse_address(url)

    async def connect_to_address() -> Any:
        return await connect(address)

    # The adapter of the driver takes these, and passes on none of them.
    options: dict[str, Any] = {"async_creator_fn": connect_to_address}
    if not address.prepares_once:
        options["prepared_statement_cache_size"] = 0
    engine = create_async_engine(
        "postgresql+asyncpg://",
        connect_args=options,
        pool_size=_KEPT_CONNECTIONS,
        max_overflow=connections - _KEPT_CONNECTIONS,
        pool_timeout=_CONNECT_TIMEOUT_S,
        hide_parameters=True,
    )
    event.listen(engine.sync_engine, "checkout", refuse_closed)
    return engine
