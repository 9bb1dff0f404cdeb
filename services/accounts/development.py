"""The development key, created at the first start of a gateway that only this machine can reach.

It is created only if no user exists yet, the data are in a SQLite file, and the gateway listens on
loopback only. Links with one-time codes sign in to the console with it.
"""

import asyncio
import ipaddress
import os
from pathlib import Path

from services.accounts.keys import hash_key
from services.accounts.repository import AccountRepository
from services.common.clock import Clock
from services.common.key_format import is_key
from services.common.settings import Settings
from services.common.storage import sign_in_codes
from services.common.storage.database import is_sqlite

USER = "dev"
PLAN = "enterprise"
FILE = "dev.key"


def is_loopback(host: str) -> bool:
    """Return whether `host` is a loopback address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def may_have_one(settings: Settings) -> bool:
    """Return whether only this machine can reach the gateway and its data."""
    return is_sqlite(settings.storage) and is_loopback(settings.server.host)


async def find_development_key(repository: AccountRepository, settings: Settings) -> str | None:
    """Return the development key, or None if there is none or it is no longer valid.

    Raises:
        GatewayError: unavailable, when the database does not answer.
        OSError: the file cannot be read.
    """
    if not may_have_one(settings):
        return None
    stored_key = await asyncio.to_thread(_read, settings.storage.data_dir / FILE)
    if is_key(stored_key) and await repository.find_caller(hash_key(stored_key)) is not None:
        return stored_key
    return None


async def redeem_sign_in_code(
    repository: AccountRepository, settings: Settings, clock: Clock, code: str
) -> str | None:
    """Redeem a one-time code; return the development key, or None if code or key is not valid.

    Raises:
        GatewayError: unavailable, when the database does not answer.
        OSError: the data folder cannot be read or written.
    """
    if not may_have_one(settings):
        return None
    data_dir = str(settings.storage.data_dir)
    if not await asyncio.to_thread(sign_in_codes.redeem, data_dir, code, clock.now()):
        return None
    return await find_development_key(repository, settings)


async def ensure_development_key(repository: AccountRepository, settings: Settings) -> str | None:
    """Return the development key, created at a first start, or None if there is none.

    The key is stored in `dev.key` in the data folder, readable by the owner only. Later calls
    return it as long as it is valid.

    Raises:
        GatewayError: unavailable, when the database does not answer.
        OSError: the file cannot be read or written.
    """
    if not may_have_one(settings):
        return None
    if (stored_key := await find_development_key(repository, settings)) is not None:
        return stored_key
    path = settings.storage.data_dir / FILE

    async def keep(key: str) -> None:
        await asyncio.to_thread(_write, path, key)

    return await repository.create_first_key(USER, PLAN, keep)


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""


def _write(path: Path, key: str) -> None:
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w") as file:
        file.write(f"{key}\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
