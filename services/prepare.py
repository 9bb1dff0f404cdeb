"""What must be there before the first worker starts: tables, secrets, development key.

`python -m services.prepare` sees to it and says on standard output, as one JSON object,
either `{"key": "gw-…"}` (null where there is no development key) or `{"error": "…"}`. It
is a process of its own so that the database libraries do not stay in the supervisor.
"""

import asyncio
import sys

import orjson

from services.accounts.development import ensure_development_key
from services.accounts.repository import AccountRepository
from services.common import logs, settings
from services.common.database import migrate, open_engine
from services.common.errors import GatewayError
from services.common.secrets import load_secrets


async def prepare(loaded: settings.Settings) -> str | None:
    """Make what is missing; give the development key where there is one.

    Raises:
        SettingsError: the settings name no usable database.
        GatewayError: unavailable, when the database does not answer.
        OSError: the file of the development key cannot be read or written.
    """
    engine = open_engine(loaded.storage)
    try:
        await migrate(engine)
        await load_secrets(engine)
        return await ensure_development_key(AccountRepository(engine), loaded)
    finally:
        await engine.dispose()


def main() -> int:
    """Prepare for the settings of this process; give the exit status."""
    logs.configure()
    try:
        answer = {"key": asyncio.run(prepare(settings.load()))}
    except (settings.SettingsError, GatewayError, OSError) as error:
        answer = {"error": str(error)}
    sys.stdout.buffer.write(orjson.dumps(answer))
    return 1 if "error" in answer else 0


if __name__ == "__main__":
    raise SystemExit(main())
