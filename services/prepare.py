"""What must be there before the first worker starts: tables, secrets, development key.

`python -m services.prepare` sees to it and says on standard output, as one JSON object,
either `{"key": "gw-…"}` (null where there is no development key) or `{"error": "…"}`. It
is a process of its own so that the database libraries do not stay in the supervisor.
"""

import asyncio
import sys
from pathlib import Path

import orjson

from services.accounts import development
from services.accounts.development import ensure_development_key
from services.accounts.repository import AccountRepository
from services.common import logs, settings
from services.common.database import migrate, open_engine
from services.common.database_errors import DatabaseError
from services.common.errors import GatewayError
from services.common.private import make_files_private, make_private
from services.common.secrets import load_secrets
from services.files import blobs


async def prepare(loaded: settings.Settings) -> str | None:
    """Make what is missing; return the development key where there is one.

    Raises:
        SettingsError: the settings name no usable database.
        GatewayError: unavailable, when the database does not answer.
        OSError: the file of the development key cannot be read or written.
    """
    _close_to_others(loaded.storage.data_dir)
    engine = open_engine(loaded.storage)
    try:
        await migrate(engine)
        await load_secrets(engine)
        return await ensure_development_key(AccountRepository(engine), loaded)
    finally:
        await engine.dispose()


def _close_to_others(data_dir: Path) -> None:
    """Take away access that others have to the data; the database's files see to themselves."""
    for path in (data_dir, data_dir / blobs.FOLDER, data_dir / development.FILE):
        make_private(path)


def main() -> int:
    """Prepare for the settings of this process; return the exit status."""
    logs.configure()
    make_files_private()
    try:
        answer = {"key": asyncio.run(prepare(settings.load()))}
    except DatabaseError as error:
        answer = {"error": error.advice}
    except (settings.SettingsError, GatewayError, OSError) as error:
        answer = {"error": str(error)}
    sys.stdout.buffer.write(orjson.dumps(answer))
    return 1 if "error" in answer else 0


if __name__ == "__main__":
    raise SystemExit(main())
