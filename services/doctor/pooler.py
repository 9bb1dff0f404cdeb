"""Check of a pooler in front of PostgreSQL that gives each transaction any of its connections."""

import asyncio
import secrets
from contextlib import suppress
from typing import Any

from services.common.storage.database_errors import POOLER_ADVICE
from services.common.storage.postgresql import connect, parse_address
from services.doctor.findings import Finding, failure, ok, warning

# Others may use the pooler too: two clients get the same connection of it in one of some rounds.
_ROUNDS = 20
# The database in which PgBouncer says of itself what it is.
_CONSOLE = "pgbouncer"


async def pooler(url: str) -> Finding | None:
    """Return whether prepared statements work; None without a pooler or without a connection."""
    address = parse_address(url)
    # No statement but those of this check is to have a name.
    unnamed = address._replace(prepares_once=False)
    clients: list[Any] = []
    try:
        try:
            for _ in range(2):
                clients.append(await connect(unnamed))
        except Exception as error:  # of the network, of TLS, or of the server
            if not clients:
                return None  # the check of the database reports it
            return warning(
                "pooler",
                f"a second connection failed ({type(error).__name__}); whether a pooler keeps "
                "prepared statements is not known",
                "let each worker open storage.database_connections connections",
            )
        keeps_statements = await _keeps_statements(*clients)
    finally:
        for client in clients:
            client.terminate()
    if keeps_statements is None:
        return None
    name = await _name(url)
    if keeps_statements and address.prepares_once:
        return ok("pooler", f"{name} keeps prepared statements")
    if keeps_statements:
        return warning(
            "pooler",
            f"{name} keeps prepared statements, and statement_cache_size=0 makes each slower",
            "remove statement_cache_size=0 from storage.database_url",
        )
    if not address.prepares_once:
        return ok("pooler", f"{name} works with statement_cache_size=0")
    return failure("pooler", f"{name} does not keep prepared statements", POOLER_ADVICE)


async def _keeps_statements(first: Any, second: Any) -> bool | None:
    """Return whether a statement works wherever a transaction runs; None without a pooler."""
    import asyncpg

    for _ in range(_ROUNDS):
        name = f"gateway_doctor_{secrets.token_hex(8)}"
        try:
            # The same name is none too many: each client has statements of its own.
            statements = [
                await client.prepare("SELECT pg_backend_pid()", name=name)
                for client in (first, second)
            ]
            pids = {await statement.fetchval() for statement in statements}
        except (
            asyncpg.DuplicatePreparedStatementError,
            asyncpg.InvalidSQLStatementNameError,
        ):
            return False
        if len(pids) == 1:
            return True
    return None


async def _name(url: str) -> str:
    """Return the name and version of a pooler, if it says so to this user."""
    import asyncpg

    with suppress(asyncpg.PostgresError, OSError, asyncio.TimeoutError):
        console = await asyncpg.connect(parse_address(url).url, database=_CONSOLE, timeout=5)
        version, _, program = console.get_settings().server_version.partition("/")
        console.terminate()
        if program == "bouncer":
            return f"PgBouncer {version}"
    return "the pooler"
