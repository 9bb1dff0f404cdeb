"""Repository of the owners of keys: look-ups by key, and the first key of a gateway.

`services.accounts.admin` changes keys, users and teams.
"""

import secrets as randomness
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.admin.audit import FIRST_START
from services.accounts.admin.key_rows import NewKey
from services.accounts.admin.keys import KeyAdministration
from services.accounts.keys import RANDOM_BYTES, hash_key, make_key
from services.accounts.limits.repository import LimitRepository
from services.accounts.membership import find_user
from services.accounts.names import unknown_user
from services.accounts.plans import PLANS
from services.accounts.tables import api_keys, plan_in_force, teams, users
from services.common import ids
from services.common.clock import Clock
from services.common.errors import invalid_api_key
from services.common.grpc.authentication import Caller
from services.common.storage.database import reading, reading_once, writing_alone

# Ids in one query: databases limit the parameters of a statement.
_IDS_AT_ONCE = 10_000


class AccountRepository:
    """Keys and their owners in the database."""

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock | None = None,
        random_bytes: Callable[[int], bytes] = randomness.token_bytes,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._engine = engine
        self._clock = clock or Clock()
        self._new_id = new_id
        self._random_bytes = random_bytes
        self._limits = LimitRepository(engine, self._clock)

    async def identify(self, key: str) -> Caller:
        """Return the owner of `key`, with limits. All other `Identify` functions call this one.

        Raises:
            GatewayError: invalid_api_key, when the key is unknown or no longer valid.
        """
        row = await self._row(api_keys.c.hash == hash_key(key))
        if row is None:
            raise invalid_api_key(
                "the API key is not known to this gateway; it may be of another one, or of another "
                "data folder"
            )
        if reason := self._invalidity(row):
            raise invalid_api_key(f"the API key {reason}")
        owner = _caller(row)
        limits = await self._limits.of_caller(owner.key_id, owner.user_id, owner.team_id)
        return replace(owner, limits=limits)

    async def identify_by_id(self, key_id: str, *, is_valid: bool) -> Caller:
        """Return the owner of the key with an id, with limits; for the gateway's own work.

        Args:
            key_id: the id.
            is_valid: whether the key must be valid still.

        Raises:
            GatewayError: invalid_api_key, when there is no such key, or it is not valid.
        """
        row = await self._row(api_keys.c.id == key_id)
        if row is None:
            raise invalid_api_key("the API key has been deleted")
        if is_valid and (reason := self._invalidity(row)):
            raise invalid_api_key(f"the API key {reason}")
        owner = _caller(row)
        limits = await self._limits.of_caller(owner.key_id, owner.user_id, owner.team_id)
        return replace(owner, limits=limits)

    async def find_caller(self, key_hash: bytes) -> Caller | None:
        """Return the owner of the valid key with that SHA-256, or None.

        A revoked, disabled or expired key is not valid.
        """
        row = await self._row(api_keys.c.hash == key_hash)
        return None if row is None or self._invalidity(row) else _caller(row)

    async def _row(self, which: ColumnElement[bool]) -> Row[*tuple[Any, ...]] | None:
        """Return the key that `which` selects, valid or not, with its owner."""
        query = (
            select(
                users.c.id,
                users.c.team_id,
                users.c.role,
                plan_in_force.label("plan"),
                api_keys.c.id.label("key_id"),
                api_keys.c.for_sign_in,
                api_keys.c.revoked_at_ms,
                api_keys.c.disabled,
                api_keys.c.expires_at_ms,
            )
            .select_from(api_keys.join(users).outerjoin(teams))
            .where(which)
        )
        async with reading_once(self._engine) as connection:
            return (await connection.execute(query)).one_or_none()

    def _invalidity(self, row: Row[*tuple[Any, ...]]) -> str:
        """Return why a key is not valid, or "". Only who has the whole key learns this."""
        if row.revoked_at_ms is not None:
            return f"was revoked on {_day(row.revoked_at_ms)}; ask the operator for another one"
        if row.disabled:
            return "is disabled; the operator enables it with `gateway keys set`"
        if row.expires_at_ms is not None and row.expires_at_ms <= self._clock.now_ms():
            return f"expired on {_day(row.expires_at_ms)}; ask the operator for another one"
        return ""

    async def caller_named(self, user: str) -> Caller:
        """Return the user with that name as the caller of a call.

        Raises:
            GatewayError: invalid_request, when there is no such user.
        """
        async with reading(self._engine) as connection:
            owner = await find_user(connection, user)
        if owner is None:
            raise unknown_user(user)
        return Caller(user_id=owner.id, team_id=owner.team_id or "", plan=PLANS[owner.plan])

    async def names_of(self, user_ids: Collection[str]) -> Mapping[str, str]:
        """Return the names of those users, by their ids, that exist."""
        names: dict[str, str] = {}
        ordered_ids = sorted(user_ids)
        async with reading(self._engine) as connection:
            for start in range(0, len(ordered_ids), _IDS_AT_ONCE):
                some = users.c.id.in_(ordered_ids[start : start + _IDS_AT_ONCE])
                rows = await connection.execute(select(users.c.id, users.c.name).where(some))
                names.update({row.id: row.name for row in rows})
        return names

    async def create_key(self, user: str, team: str | None = None, plan: str | None = None) -> str:
        """Create a key, and its user and team if they are new; return the key itself.

        Raises:
            GatewayError: invalid_request, as `KeyAdministration.create`.
        """
        return (await self._keys().create(NewKey(user, team, plan))).key

    async def create_first_key(
        self, user: str, plan: str, keep: Callable[[str], Awaitable[None]]
    ) -> str | None:
        """Create a key and its user if there is no user yet; otherwise return None.

        `keep` stores the key before the transaction is committed: if it fails, nothing is created.
        """
        key = make_key(self._random_bytes(RANDOM_BYTES))
        async with writing_alone(self._engine) as connection:
            if await connection.scalar(select(users.c.id).limit(1)) is not None:
                return None
            await self._keys().insert(connection, key, NewKey(user, plan=plan), FIRST_START)
            await keep(key)
        return key

    def _keys(self) -> KeyAdministration:
        return KeyAdministration(self._engine, self._clock, self._random_bytes, new_id=self._new_id)


def _caller(row: Row[*tuple[Any, ...]]) -> Caller:
    return Caller(
        *(row.id, row.team_id or "", PLANS[row.plan], row.key_id),
        role=row.role or "",
        is_for_sign_in=row.for_sign_in,
    )


def _day(at_ms: int) -> str:
    """Return the day of a time in Unix milliseconds, in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).date().isoformat()
