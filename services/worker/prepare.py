"""Preparation of a gateway: tables, secrets and the development key."""

import time

from services.accounts import development
from services.accounts.admin.admin_keys import configured_keys
from services.accounts.development import ensure_development_key
from services.accounts.limits.webhook import signing_key
from services.accounts.repository import AccountRepository
from services.common.errors import GatewayError
from services.common.settings import Settings, SettingsError
from services.common.storage import sign_in_codes
from services.common.storage.database import open_engine, reports_storage
from services.common.storage.database_errors import DatabaseError
from services.common.storage.migrations.runner import migrate
from services.common.storage.private import make_private
from services.common.storage.secrets import load_secrets
from services.files import blobs


class NotPreparedError(Exception):
    """Error raised when a gateway cannot be prepared; the text is for operators."""


async def prepare(settings: Settings) -> str:
    """Create missing tables, secrets and the development key.

    Any number of processes may call it at once.

    Returns:
        The development key, a space, and a one-time code for signing in with it; "" if there is no
        such key.

    Raises:
        NotPreparedError: the settings have no usable database, or name a variable or file without
            an admin key or a secret; the database does not answer; or the file of the development
            key cannot be read or written.
    """
    try:
        return await _prepare(settings)
    except DatabaseError as error:
        raise NotPreparedError(error.advice) from error
    except (SettingsError, GatewayError, OSError) as error:
        raise NotPreparedError(str(error)) from error


async def _prepare(settings: Settings) -> str:
    reports_storage(settings.storage)
    configured_keys(settings.admin)
    signing_key(settings.budgets)
    # Remove other users' access to the data; `open_engine` does so for the database's files.
    folder = settings.storage.data_dir
    for path in (folder, folder / blobs.FOLDER, folder / development.FILE):
        make_private(path)
    engine = open_engine(settings.storage)
    try:
        await migrate(engine)
        await load_secrets(engine)
        key = await ensure_development_key(AccountRepository(engine), settings)
    finally:
        await engine.dispose()
    return "" if key is None else f"{key} {_sign_in_code(str(folder))}"


def _sign_in_code(data_dir: str) -> str:
    """Return a code, or "" if it cannot be stored: a full disk must not prevent the start."""
    try:
        return sign_in_codes.issue(data_dir, time.time())
    except OSError:
        return ""
