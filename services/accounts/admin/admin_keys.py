"""Admin keys: `gwadmin-` and 32 random bytes in base64url, 51 characters.

Only the SHA-256 of a key is stored, as for other keys. Admin keys are in the database, and in the
settings: up to three with the scope `all`, and up to a hundred with names and scopes of their own.
"""

import base64
import hashlib
import os
import secrets as randomness
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Select, insert, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.admin.audit import COMMAND_LINE, Actor, Record
from services.accounts.admin.subjects import SubjectAdministration
from services.accounts.names import check_label
from services.accounts.tables import admin_keys
from services.common import ids
from services.common.clock import Clock
from services.common.errors import GatewayError, invalid
from services.common.grpc.admin_scopes import EVERYTHING, SCOPES
from services.common.grpc.authentication import is_admin_key
from services.common.key_format import looks_like_key
from services.common.settings import Admin, SettingsError
from services.common.settings.sections import AdminKeySource
from services.common.storage.database import reading_once, writing_alone

PREFIX = "gwadmin-"
MAX_KEYS = 100

_RANDOM_BYTES = 32
# The number of random characters that are shown in lists.
_SHOWN = 6
_MAX_FILE_BYTES = 1024


@dataclass(frozen=True, slots=True)
class AdminCredential:
    """A valid admin key.

    Attributes:
        hash: SHA-256 of the key.
        name: name of the key, or "".
        scopes: what the key permits; see `admin_scopes`.
    """

    hash: bytes
    name: str = ""
    scopes: frozenset[str] = EVERYTHING


@dataclass(frozen=True, slots=True)
class AdminKeyInfo:
    """An admin key in the database, for operators; times in Unix milliseconds."""

    id: str
    prefix: str
    name: str
    created_at_ms: int
    revoked_at_ms: int | None
    scopes: str


def make_admin_key(random: bytes) -> str:
    """Return the admin key that encodes 32 random bytes."""
    return PREFIX + base64.urlsafe_b64encode(random).rstrip(b"=").decode()


def hash_admin_key(key: str) -> bytes:
    """Return the stored hash of an admin key: 32 bytes."""
    return hashlib.sha256(key.encode()).digest()


def configured_keys(
    settings: Admin, environ: Mapping[str, str] = os.environ
) -> Mapping[str, AdminCredential]:
    """Return the admin keys of the settings, by their names in the audit log.

    Raises:
        SettingsError: a named variable or file has no admin key, or two keys are the same.
    """
    keys: dict[str, AdminCredential] = {}
    for setting, hashed in _hashes(settings, "admin.", environ):
        keys[setting] = AdminCredential(hashed)
    for index, key in enumerate(settings.keys):
        for _, hashed in _hashes(key, f"admin.keys[{index}].", environ):
            if any(hashed == other.hash for other in keys.values()):
                raise SettingsError(
                    f"admin.keys[{index}]: the key {key.name!r} is also another admin key; make "
                    "one for each with `gateway admin-key make`"
                )
            credential = AdminCredential(hashed, key.name, frozenset(key.scopes))
            keys[f"admin.keys.{key.name}"] = credential
    return keys


def _hashes(
    source: AdminKeySource, prefix: str, environ: Mapping[str, str]
) -> Iterator[tuple[str, bytes]]:
    """Yield the settings of a section that are set, each with the hash of its key.

    Raises:
        SettingsError: a named variable or file has no admin key.
    """
    if source.key_sha256:
        yield f"{prefix}key_sha256", bytes.fromhex(source.key_sha256)
    if source.key_env:
        setting, key = f"{prefix}key_env", environ.get(source.key_env, "")
        yield setting, _checked(setting, f"the variable {source.key_env}", key)
    if source.key_file:
        setting = f"{prefix}key_file"
        key = _read(setting, Path(source.key_file))
        yield setting, _checked(setting, source.key_file, key)


class AdminKeyRepository(SubjectAdministration[AdminKeyInfo]):
    """Repository of admin keys."""

    kind = "admin_key"
    table = admin_keys

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock | None = None,
        random_bytes: Callable[[int], bytes] = randomness.token_bytes,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        super().__init__(engine, clock, new_id=new_id)
        self._random_bytes = random_bytes

    def _select(self) -> Select[Any]:
        return select(
            admin_keys.c.id,
            admin_keys.c.prefix,
            admin_keys.c.name,
            admin_keys.c.created_at_ms,
            admin_keys.c.revoked_at_ms,
            admin_keys.c.scopes,
        )

    def _from_row(self, row: Mapping[str, Any]) -> AdminKeyInfo:
        return AdminKeyInfo(**row)

    def _to_record(self, subject: AdminKeyInfo) -> Record:
        return asdict(subject)

    def _not_found(self) -> GatewayError:
        return invalid(
            "key", "key: no admin key has this id; `admin-key list` shows all admin keys"
        )

    async def create(
        self, name: str = "", actor: Actor = COMMAND_LINE, *, scopes: Collection[str] = EVERYTHING
    ) -> str:
        """Create an admin key and return it.

        Raises:
            GatewayError: invalid_request, when the name or a scope is invalid, or there are
                `MAX_KEYS` keys.
        """
        check_label(name)
        if not scopes or not set(scopes).issubset(SCOPES):
            raise invalid("scope", f"scope: must be some of {', '.join(SCOPES)}")
        key = make_admin_key(self._random_bytes(_RANDOM_BYTES))
        key_id = self._new_id("admin_")
        async with writing_alone(self._engine) as connection:
            valid = select(admin_keys.c.id).where(admin_keys.c.revoked_at_ms.is_(None))
            if len((await connection.execute(valid)).all()) >= MAX_KEYS:
                raise invalid(
                    "key", f"key: the maximum of {MAX_KEYS} admin keys is reached; revoke one"
                )
            await connection.execute(
                insert(admin_keys).values(
                    id=key_id,
                    hash=hash_admin_key(key),
                    prefix=key[: len(PREFIX) + _SHOWN],
                    name=name,
                    created_at_ms=self._clock.now_ms(),
                    scopes=",".join(sorted(set(scopes))),
                )
            )
            await self._created(connection, key_id, actor)
        return key

    async def list_all(self) -> Sequence[AdminKeyInfo]:
        """Return every admin key, oldest first."""
        return await self._list()

    async def revoke(self, key_id: str, actor: Actor = COMMAND_LINE) -> AdminKeyInfo:
        """Revoke the admin key with that id; repeated calls keep the first time.

        Raises:
            GatewayError: invalid_request, when there is no such key.
        """
        async with writing_alone(self._engine) as connection:
            before = await self._find(connection, key_id)
            revoked_at_ms = before.revoked_at_ms or self._clock.now_ms()
            return await self._change(
                connection, before, {"revoked_at_ms": revoked_at_ms}, actor, "revoke"
            )

    async def valid_keys(self) -> Mapping[str, AdminCredential]:
        """Return all unrevoked admin keys, by id."""
        query = select(
            admin_keys.c.id, admin_keys.c.hash, admin_keys.c.name, admin_keys.c.scopes
        ).where(admin_keys.c.revoked_at_ms.is_(None))
        async with reading_once(self._engine) as connection:
            return {
                row.id: AdminCredential(row.hash, row.name, frozenset(row.scopes.split(",")))
                for row in await connection.execute(query)
            }


def _read(setting: str, path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_FILE_BYTES).decode("ascii", "replace")
    except OSError as error:
        if looks_like_key(str(path)):
            raise SettingsError(
                f"{setting}: must be the path of a file, and looks like a key"
            ) from None
        raise SettingsError(f"{setting}: {path}: {error.strerror}") from error


def _checked(setting: str, place: str, key: str) -> bytes:
    key = key.strip()
    if not is_admin_key(key):
        raise SettingsError(
            f"{setting}: {place} does not contain an admin key ({PREFIX} and 43 letters, digits, "
            "- and _); create one with `gateway admin-key make`"
        )
    return hash_admin_key(key)
