"""The providers that administrators store in the database.

Providers of the settings and of the environment take precedence: a stored one of the same name is
kept, but hidden. Keys are encrypted anew when the settings put another key first.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Row, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.accounts.v1.stored_providers_pb2 import (
    STORED_PROVIDER_STATE_ACTIVE,
    STORED_PROVIDER_STATE_HIDDEN,
    STORED_PROVIDER_STATE_LOCKED,
    StoredProvider,
)
from gateway.errors.v1 import errors_pb2
from services.accounts.admin.audit import COMMAND_LINE, Actor, Record, Subject, record
from services.accounts.names import check_name
from services.accounts.providers.sealing import Sealed, Sealer
from services.accounts.providers.tables import stored_providers as table
from services.common import ids
from services.common.clock import Clock
from services.common.errors import GatewayError, conflict, invalid
from services.common.provider_candidates import Candidate, candidate, check_key
from services.common.settings import SANDBOX, Provider, Settings, effective_providers
from services.common.storage.database import insert_into, reading_once, writing_alone

MAX_PROVIDERS = 100
# Names of the gateway's own providers.
_RESERVED = (SANDBOX, "embedded")

log = logging.getLogger(__name__)


class NewProvider(NamedTuple):
    """A change of a provider.

    Attributes:
        name: its name.
        kind: its API; "" for that of the stored provider, or of the preset.
        base_url: its address; as `kind`.
        api_key: its key; "" for none, None to keep it.
    """

    name: str
    kind: str = ""
    base_url: str = ""
    api_key: str | None = None

    def __repr__(self) -> str:
        """Return a text without the key."""
        return f"NewProvider({self.name!r}, {self.kind!r}, {self.base_url!r})"


class StoredProviderRepository:
    """Stored providers; every method raises `unavailable` when the database does not answer.

    Args:
        engine: the database.
        clock: the clock.
        settings: the settings in force.
        environ: the environment.
        new_id: generates the ids of audit entries.

    Raises:
        SettingsError: an encryption key is malformed.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock,
        settings: Settings,
        environ: Mapping[str, str] = os.environ,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._environ = environ
        self._new_id = new_id
        self._warned: set[str] = set()
        self.configure(settings)

    def configure(self, settings: Settings) -> None:
        """Apply reloaded settings.

        Raises:
            SettingsError: an encryption key is malformed.
        """
        self._sealer = Sealer(settings.stored_providers.keys(self._environ))
        self._settings = settings
        self._ruling = effective_providers(settings, self._environ).keys() - {SANDBOX}

    @property
    def can_store(self) -> bool:
        """Whether the settings have an encryption key."""
        return bool(self._sealer.current)

    async def list_all(self) -> Sequence[StoredProvider]:
        """Return all providers by name, without their keys."""
        return [self._to_proto(row) for row in await self._rows()]

    async def usable(self) -> dict[str, Provider]:
        """Return the providers that are not locked, as sections of the settings by name.

        Hidden ones are among them: their keys are encrypted anew, too.
        """
        if not self.can_store:
            return {}
        providers = {}
        for row in await self._rows():
            key = self._key_of(row)
            if key is None:
                self._warn(row.name)
                continue
            if row.sealed_by and row.sealed_by != self._sealer.current:
                await self._seal_again(row, key)
            providers[row.name] = Candidate(row.kind, row.base_url, key).settings()
        return providers

    async def set(self, new: NewProvider, actor: Actor = COMMAND_LINE) -> StoredProvider:
        """Create or change a provider.

        Raises:
            GatewayError: invalid_request; conflict, when the settings or the environment have a
                provider of that name, or the settings have no encryption key.
        """
        check_name("name", new.name)
        self._check_free(new.name)
        now_ms = self._clock.now_ms()
        async with writing_alone(self._engine) as connection:
            before = (await connection.execute(_named(new.name))).one_or_none()
            if before is None:
                await _check_room(connection)
            one, is_kept = self._changed(before, new)
            values: dict[str, Any] = {"kind": one.kind, "base_url": one.base_url}
            if not is_kept:
                sealed = self._seal(new.name, one)
                values |= {
                    "sealed_key": sealed.content or None,
                    "sealed_by": sealed.by,
                    "key_set_at_ms": now_ms,
                }
            created = {"name": new.name, "created_at_ms": now_ms, "key_set_at_ms": now_ms, **values}
            inserted = insert_into(connection, table).values(**created)
            await connection.execute(
                inserted.on_conflict_do_update(index_elements=["name"], set_=values)
            )
            after = (await connection.execute(_named(new.name))).one()
            action = _action(before, after, is_kept=is_kept)
            await self._record(connection, actor, action, new.name, before, after)
        return self._to_proto(after)

    async def delete(self, name: str, actor: Actor = COMMAND_LINE) -> None:
        """Delete a provider and its key.

        Raises:
            GatewayError: not_found.
        """
        async with writing_alone(self._engine) as connection:
            before = (await connection.execute(_named(name))).one_or_none()
            if before is None:
                raise GatewayError(
                    errors_pb2.REASON_NOT_FOUND, "name: no such stored provider", param="name"
                )
            await connection.execute(delete(table).where(table.c.name == name))
            await self._record(connection, actor, "delete", name, before, None)

    async def _rows(self) -> Sequence[Row[Any]]:
        query = select(table).order_by(table.c.name).limit(MAX_PROVIDERS)
        async with reading_once(self._engine) as connection:
            return (await connection.execute(query)).all()

    def _check_free(self, name: str) -> None:
        """Check that a provider can be stored under a name.

        Raises:
            GatewayError: invalid_request, conflict.
        """
        if name in _RESERVED:
            raise invalid("name", f"name: {name} is a provider of the gateway itself")
        if name in self._ruling:
            place = "the settings" if name in self._settings.providers else "the environment"
            raise conflict(
                "name",
                f"name: the provider {name} comes from {place} of the gateway, which take "
                "precedence; change it there, or choose another name",
            )
        if not self.can_store:
            raise conflict(
                "api_key",
                "api_key: the gateway has no key to encrypt it; set GATEWAY_ENCRYPTION_KEYS or "
                "stored_providers.encryption_keys_file (`openssl rand -base64 32` makes a key), or "
                f"add [providers.{name}] to the settings",
            )

    def _changed(self, before: Row[Any] | None, new: NewProvider) -> tuple[Candidate, bool]:
        """Return a provider after a change, and whether the key that it had is kept.

        Raises:
            GatewayError: invalid_request.
        """
        kind, base_url = new.kind, new.base_url
        if before is not None:
            kind, base_url = kind or before.kind, base_url or before.base_url
        one = candidate(
            new.name,
            kind,
            base_url,
            new.api_key or "",
            self._settings.server,
            may_be_internal=self._settings.stored_providers.internal_addresses,
        )
        if before is None or new.api_key is not None:
            return one, False
        if (one.kind, one.base_url) != (before.kind, before.base_url) and before.sealed_by:
            raise invalid(
                "api_key", "api_key: required, since a key is not sent to another address"
            )
        return one, True

    def _seal(self, name: str, one: Candidate) -> Sealed:
        if not one.api_key:
            return Sealed("", b"")
        check_key(one.api_key)
        return self._sealer.seal(one.api_key, (name, one.kind, one.base_url))

    def _key_of(self, row: Row[Any]) -> str | None:
        """Return the key of a provider, "" if it has none; None if it cannot be decrypted."""
        if not row.sealed_by:
            return ""
        sealed = Sealed(row.sealed_by, row.sealed_key or b"")
        return self._sealer.open(sealed, (row.name, row.kind, row.base_url))

    async def _seal_again(self, row: Row[Any], key: str) -> None:
        """Encrypt a key with the first one of the settings, unless it has changed meanwhile."""
        sealed = self._seal(row.name, Candidate(row.kind, row.base_url, key))
        changed = (
            update(table)
            .where(table.c.name == row.name, table.c.sealed_key == row.sealed_key)
            .values(sealed_key=sealed.content, sealed_by=sealed.by)
        )
        async with writing_alone(self._engine) as connection:
            is_first = (await connection.execute(changed)).rowcount > 0
        if is_first:
            log.info("key of a stored provider encrypted anew", extra={"provider": row.name})

    def _warn(self, name: str) -> None:
        if name not in self._warned:
            self._warned.add(name)
            log.warning(
                "stored provider not used: no key of the settings decrypts its key",
                extra={"provider": name},
            )

    def _to_proto(self, row: Row[Any]) -> StoredProvider:
        state = STORED_PROVIDER_STATE_ACTIVE
        if row.name in self._ruling:
            state = STORED_PROVIDER_STATE_HIDDEN
        elif not self.can_store or self._key_of(row) is None:
            state = STORED_PROVIDER_STATE_LOCKED
        return StoredProvider(
            name=row.name,
            kind=row.kind,
            base_url=row.base_url,
            has_key=bool(row.sealed_by),
            state=state,
            created_at_ms=row.created_at_ms,
            key_set_at_ms=row.key_set_at_ms,
        )

    async def _record(
        self,
        connection: AsyncConnection,
        actor: Actor,
        action: str,
        name: str,
        before: Row[Any] | None,
        after: Row[Any] | None,
    ) -> None:
        await record(
            connection,
            self._clock,
            self._new_id,
            actor,
            f"provider.{action}",
            Subject("provider", name),
            before=_to_record(before),
            after=_to_record(after),
        )


def _named(name: str) -> Any:
    return select(table).where(table.c.name == name)


def _action(before: Row[Any] | None, after: Row[Any], *, is_kept: bool) -> str:
    """Return what a change is called in the audit log."""
    if before is None:
        return "create"
    is_moved = (before.kind, before.base_url) != (after.kind, after.base_url)
    return "update" if is_moved or is_kept else "rotate"


async def _check_room(connection: AsyncConnection) -> None:
    count = await connection.scalar(select(func.count()).select_from(table))
    if count is not None and count >= MAX_PROVIDERS:
        raise invalid("name", f"name: there may be at most {MAX_PROVIDERS} stored providers")


def _to_record(row: Row[Any] | None) -> Record | None:
    if row is None:
        return None
    return {"kind": row.kind, "base_url": row.base_url, "has_key": bool(row.sealed_by)}
