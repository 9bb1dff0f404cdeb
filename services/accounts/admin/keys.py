"""Administration of API keys in the database."""

import secrets as randomness
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Select, insert, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.accounts.v1 import admin_pb2
from gateway.accounts.v1.admin_pb2 import ApiKey
from services.accounts.admin.audit import COMMAND_LINE, Actor, Record
from services.accounts.admin.key_rows import NewKey, select_keys, to_api_key
from services.accounts.admin.last_administrator import check_another_administrator
from services.accounts.admin.records import to_record
from services.accounts.admin.subjects import SubjectAdministration
from services.accounts.keys import RANDOM_BYTES, hash_key, make_key, shown_part
from services.accounts.limits.repository import read_limits, write_limits
from services.accounts.limits.rules import SubjectKind
from services.accounts.membership import ensure_user
from services.accounts.names import check_label
from services.accounts.tables import SIGN_IN_PREFIX, api_keys, teams, users
from services.common import ids
from services.common.clock import Clock
from services.common.errors import conflict, invalid
from services.common.key_format import is_key
from services.common.storage.database import writing_alone

MAX_GRACE_S = 30 * 86_400
DEFAULT_GRACE_S = 86_400


@dataclass(frozen=True, slots=True)
class KeyChanges:
    """Changes of a key; None means no change.

    Attributes:
        name: display name.
        disabled: whether the key is invalid until it is enabled again.
        expires_at_ms: expiry in Unix milliseconds, or 0 for never.
    """

    name: str | None = None
    disabled: bool | None = None
    expires_at_ms: int | None = None


class CreatedKey(NamedTuple):
    """A new key, and its stored record."""

    key: str
    info: ApiKey


class RotatedKey(NamedTuple):
    """The new key, its stored record, and the record of the old key, which expires."""

    key: str
    info: ApiKey
    replaced: ApiKey


class KeyAdministration(SubjectAdministration[ApiKey]):
    """Administration of API keys in the database."""

    kind = "key"
    table = api_keys

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
        return select_keys()

    def _from_row(self, row: Mapping[str, Any]) -> ApiKey:
        return to_api_key(row, self._clock.now_ms())

    def _to_record(self, subject: ApiKey) -> Record:
        return to_record(subject)

    async def create(self, new: NewKey, actor: Actor = COMMAND_LINE) -> CreatedKey:
        """Create a key, and its user and team if they are new.

        Raises:
            GatewayError: invalid_request, when a name is invalid, the expiry is in the past, or an
                existing user or team has another team or plan.
        """
        check_label(new.name)
        self._check_expiry(new.expires_at_ms)
        key = make_key(self._random_bytes(RANDOM_BYTES))
        async with writing_alone(self._engine) as connection:
            return CreatedKey(key, await self.insert(connection, key, new, actor))

    async def insert(
        self, connection: AsyncConnection, key: str, new: NewKey, actor: Actor
    ) -> ApiKey:
        """Insert a key, and its user and team if they are new, in a transaction of the caller.

        Raises:
            GatewayError: invalid_request, as `ensure_user`.
        """
        user_id = await ensure_user(
            connection, self._clock, self._new_id, new.user, new.team, new.plan
        )
        key_id = await self._insert_row(
            connection, key, user_id=user_id, name=new.name, expires_at_ms=new.expires_at_ms
        )
        return await self._created(connection, key_id, actor)

    async def insert_for_sign_in(
        self, connection: AsyncConnection, user_id: str, actor: Actor
    ) -> CreatedKey:
        """Insert a key with which its user signs in with the user's role, as `insert`."""
        key = make_key(self._random_bytes(RANDOM_BYTES))
        values = {"user_id": user_id, "name": "Sign-in", "for_sign_in": True}
        key_id = await self._insert_row(connection, key, **values)
        return CreatedKey(key, await self._created(connection, key_id, actor))

    async def find(self, which: str) -> ApiKey:
        """Look up a key by its id, by its prefix as shown in lists, or by the key itself.

        Raises:
            GatewayError: invalid_request, when no key or more than one key matches.
        """
        matches = [api_keys.c.id == which, api_keys.c.prefix == which]
        if is_key(which):
            matches.append(api_keys.c.hash == hash_key(which))
        keys = await self._list(or_(*matches), limit=10)
        if not keys:
            raise invalid("key", "key: no key has this id or prefix; `keys list` shows all keys")
        if len(keys) > 1:
            key_ids = ", ".join(key.id for key in keys)
            raise invalid(
                "key", f"key: several keys have this prefix; use the id of one: {key_ids}"
            )
        return keys[0]

    async def page(
        self, page_size: int, after_id: str = "", *, user: str = "", team: str = ""
    ) -> Sequence[ApiKey]:
        """Return the oldest keys after an id; "" selects all users and teams."""
        filters = (users.c.name, user), (teams.c.name, team)
        return await self._page(page_size, after_id, *filters)

    async def update(self, key_id: str, changes: KeyChanges, actor: Actor = COMMAND_LINE) -> ApiKey:
        """Change a key.

        Raises:
            GatewayError: not_found; invalid_request, when no change is given or a value is
                invalid; conflict, when the key is revoked, or as `check_another_administrator`.
        """
        if changes == KeyChanges():
            raise invalid("name", "name, disabled, expires_at_ms: at least one is required")
        values: dict[str, object] = {}
        if changes.name is not None:
            check_label(changes.name)
            values["name"] = changes.name
        if changes.disabled is not None:
            values["disabled"] = changes.disabled
        if changes.expires_at_ms is not None:
            self._check_expiry(changes.expires_at_ms or None)
            values["expires_at_ms"] = changes.expires_at_ms or None
        async with writing_alone(self._engine) as connection:
            before = await self._find(connection, key_id)
            if before.state == admin_pb2.KEY_STATE_REVOKED:
                raise conflict("key_id", "key_id: the key is revoked, which cannot be undone")
            if values.get("disabled") or values.get("expires_at_ms"):
                await self._check_removed(connection, before, actor)
            return await self._change(connection, before, values, actor)

    async def revoke(self, key_id: str, actor: Actor = COMMAND_LINE) -> ApiKey:
        """Revoke a key; repeated calls keep the first time.

        Raises:
            GatewayError: not_found; conflict, as `check_another_administrator`.
        """
        async with writing_alone(self._engine) as connection:
            before = await self._find(connection, key_id)
            await self._check_removed(connection, before, actor)
            at_ms = before.revoked_at_ms or self._clock.now_ms()
            return await self._change(connection, before, {"revoked_at_ms": at_ms}, actor, "revoke")

    async def rotate(
        self, key_id: str, grace_s: int = DEFAULT_GRACE_S, actor: Actor = COMMAND_LINE
    ) -> RotatedKey:
        """Create a key that replaces another one; the old key expires after `grace_s` seconds.

        The new key has the user, the name, the expiry and the limits of the old key.

        Raises:
            GatewayError: not_found; invalid_request, when `grace_s` is out of range; conflict, when
                the key is not valid, or has already been rotated.
        """
        if not 0 <= grace_s <= MAX_GRACE_S:
            raise invalid("grace_s", f"grace_s: must be 0 to {MAX_GRACE_S:,} seconds")
        key = make_key(self._random_bytes(RANDOM_BYTES))
        async with writing_alone(self._engine) as connection:
            old = await self._find(connection, key_id)
            if old.state != admin_pb2.KEY_STATE_ACTIVE:
                raise conflict("key_id", "key_id: only a valid key can be rotated")
            rotated = select(api_keys.c.id).where(api_keys.c.replaces == key_id)
            if (newer := await connection.scalar(rotated)) is not None:
                raise conflict(
                    "key_id", f"key_id: the key was already rotated and is replaced by {newer}"
                )
            new_id = await self._insert_row(
                connection,
                key,
                user_id=old.user_id,
                name=old.name,
                expires_at_ms=old.expires_at_ms if old.HasField("expires_at_ms") else None,
                replaces=old.id,
                for_sign_in=old.for_sign_in,
            )
            now_ms = self._clock.now_ms()
            if limits := await read_limits(connection, SubjectKind.KEY, key_id):
                await write_limits(connection, SubjectKind.KEY, new_id, limits, now_ms)
            ends_at_ms = now_ms + 1000 * grace_s
            if old.HasField("expires_at_ms"):
                ends_at_ms = min(ends_at_ms, old.expires_at_ms)
            replaced = await self._change(
                connection,
                old,
                {"expires_at_ms": ends_at_ms},
                actor,
                "rotate",
                replaced_by=new_id,
            )
            return RotatedKey(key, await self._find(connection, new_id), replaced)

    async def _check_removed(self, connection: AsyncConnection, key: ApiKey, actor: Actor) -> None:
        """Raise an error if the last administrator signs in with a key that becomes invalid."""
        if key.for_sign_in or key.prefix == SIGN_IN_PREFIX:
            await check_another_administrator(
                *(connection, actor, self._clock.now_ms(), "key_id"), without_key=key.id
            )

    async def _insert_row(self, connection: AsyncConnection, key: str, **values: object) -> str:
        """Insert the row of a key; return its id."""
        key_id = self._new_id("key_")
        await connection.execute(
            insert(api_keys).values(
                id=key_id,
                hash=hash_key(key),
                prefix=shown_part(key),
                created_at_ms=self._clock.now_ms(),
                **values,
            )
        )
        return key_id

    def _check_expiry(self, at_ms: int | None) -> None:
        if at_ms is not None and not self._clock.now_ms() < at_ms < 1 << 53:
            raise invalid("expires_at_ms", "expires_at_ms: must be in the future")
