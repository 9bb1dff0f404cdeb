"""Repository of keys, users and teams.

A user belongs to one team or none. A plan belongs to the team where there is one, else
to the user. Users and teams have names that operators write and ids that everything
else refers to.
"""

import re
import secrets as randomness
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    LargeBinary,
    Select,
    String,
    Table,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.accounts.keys import RANDOM_BYTES, hash_key, make_key, shown_part
from services.accounts.limits.repository import LimitRepository
from services.accounts.plans import DEFAULT, PLANS
from services.common.authentication import Caller, is_key
from services.common.database import metadata, reading, reading_once, writing, writing_alone
from services.common.errors import GatewayError, invalid, invalid_api_key
from services.common.ids import Source

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}", re.ASCII)
_IS_PLAN = f"plan IN ({', '.join(map(repr, PLANS))})"

teams = Table(
    "teams",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("name", String(64), nullable=False, unique=True),
    Column("plan", String(32), CheckConstraint(_IS_PLAN, name="plan"), nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
)

users = Table(
    "users",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("name", String(64), nullable=False, unique=True),
    Column("team_id", String(64), ForeignKey("teams.id"), index=True),
    Column("plan", String(32), CheckConstraint(_IS_PLAN, name="plan"), nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("hash", LargeBinary(32), nullable=False, unique=True),
    Column("prefix", String(16), nullable=False, index=True),
    Column("user_id", String(64), ForeignKey("users.id"), nullable=False, index=True),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("revoked_at_ms", BigInteger),
)

_plan = func.coalesce(teams.c.plan, users.c.plan)


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A key as operators see it.

    Attributes:
        id: `key_` and a ULID.
        prefix: how the key begins.
        user: name of the user.
        team: name of the user's team, or "".
        plan: name of the plan that counts for the user.
        created_at_ms: Unix milliseconds.
        revoked_at_ms: Unix milliseconds, or None while the key is good.
    """

    id: str
    prefix: str
    user: str
    team: str
    plan: str
    created_at_ms: int
    revoked_at_ms: int | None


class _User(NamedTuple):
    id: str
    team_id: str | None
    team: str | None
    plan: str


class AccountRepository:
    """Keys, users and teams in the database."""

    def __init__(
        self,
        engine: AsyncEngine,
        source: Source | None = None,
        random_bytes: Callable[[int], bytes] = randomness.token_bytes,
    ) -> None:
        self._engine = engine
        self._source = source or Source()
        self._random_bytes = random_bytes
        self._limits = LimitRepository(engine, self._source)

    async def identify(self, key: str) -> Caller:
        """Return the owner of `key` with the limits; this is the `Identify` behind every other.

        Raises:
            GatewayError: invalid_api_key, when it belongs to nobody or is revoked.
        """
        found = await self.find_caller(hash_key(key))
        if found is None:
            raise invalid_api_key()
        limits = await self._limits.of_caller(found.key_id, found.user_id, found.team_id)
        return replace(found, limits=limits)

    async def find_caller(self, key_hash: bytes) -> Caller | None:
        """Return the owner of the key with that SHA-256, or None when none or it is revoked."""
        query = (
            select(users.c.id, users.c.team_id, _plan.label("plan"), api_keys.c.id.label("key_id"))
            .select_from(api_keys.join(users).outerjoin(teams))
            .where(api_keys.c.hash == key_hash, api_keys.c.revoked_at_ms.is_(None))
        )
        async with reading_once(self._engine) as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            return None
        return Caller(row.id, row.team_id or "", PLANS[row.plan], row.key_id)

    async def caller_named(self, user: str) -> Caller:
        """Return the user with that name as their calls are seen.

        Raises:
            GatewayError: invalid_request, when nobody is called so.
        """
        async with reading(self._engine) as connection:
            known = await _find_user(connection, user)
        if known is None:
            raise _nobody(user)
        return Caller(user_id=known.id, team_id=known.team_id or "", plan=PLANS[known.plan])

    async def create_key(self, user: str, team: str | None = None, plan: str | None = None) -> str:
        """Create a key, and its user and team where they are new; return the key itself.

        Args:
            user: name of the user.
            team: name of the user's team; None for none, or for the one a known user is in.
            plan: name of the plan of a new team or, without one, a new user; None for
                `personal_free`, or for the one that is set.

        Raises:
            GatewayError: invalid_request, when a name breaks the rules, or a known user or
                team has another team or plan.
        """
        _check(user=user, team=team, plan=plan)
        key = make_key(self._random_bytes(RANDOM_BYTES))
        async with writing_alone(self._engine) as connection:
            await self._add_key(connection, key, user, team, plan)
        return key

    async def create_first_key(
        self, user: str, plan: str, keep: Callable[[str], Awaitable[None]]
    ) -> str | None:
        """Create a key and its user if there is no user yet; otherwise return None.

        `keep` puts the key away before it counts: when it fails nothing was made.
        """
        _check(user=user, team=None, plan=plan)
        key = make_key(self._random_bytes(RANDOM_BYTES))
        async with writing_alone(self._engine) as connection:
            if await connection.scalar(select(users.c.id).limit(1)) is not None:
                return None
            await self._add_key(connection, key, user, None, plan)
            await keep(key)
        return key

    async def list_keys(self) -> Sequence[KeyInfo]:
        """Return every key, oldest first."""
        async with reading(self._engine) as connection:
            rows = await connection.execute(_keys().order_by(api_keys.c.id))
            return [KeyInfo(*row) for row in rows]

    async def revoke_key(self, which: str) -> KeyInfo:
        """Revoke the key with that id, or that prefix as `list_keys` shows it, or itself.

        Revoking twice keeps the first time.

        Raises:
            GatewayError: invalid_request, when no key or more than one answers to it.
        """
        matches = [api_keys.c.id == which, api_keys.c.prefix == which]
        if is_key(which):
            matches.append(api_keys.c.hash == hash_key(which))
        async with writing(self._engine) as connection:
            found = (await connection.execute(_keys().where(or_(*matches)))).all()
            if not found:
                raise invalid("key", "key: no key has that id or prefix; `keys list` shows all")
            if len(found) > 1:
                ids = ", ".join(row.id for row in found)
                raise invalid("key", f"key: several begin so; give the id of one: {ids}")
            await connection.execute(
                update(api_keys)
                .where(api_keys.c.id == found[0].id, api_keys.c.revoked_at_ms.is_(None))
                .values(revoked_at_ms=self._now_ms())
            )
            after = await connection.execute(_keys().where(api_keys.c.id == found[0].id))
            return KeyInfo(*after.one())

    async def set_user(self, user: str, team: str | None = None, plan: str | None = None) -> None:
        """Move a known user, or change the plan that counts for them.

        Args:
            user: name of the user.
            team: name of the new team, made when it is new; "" for none; None for no change.
            plan: name of the new plan of the user's team, or of the user where there is
                none; None for no change.

        Raises:
            GatewayError: invalid_request, when a name breaks the rules, the user is
                unknown, or nothing is to change.
        """
        _check(user=user, team=team or None, plan=plan)
        if team is None and plan is None:
            raise invalid("team", "team, plan: give at least one of them")
        async with writing_alone(self._engine) as connection:
            known = await _find_user(connection, user)
            if known is None:
                raise _nobody(user)
            team_id = known.team_id
            if team is not None:
                team_id = await self._team(connection, team) if team else None
                await connection.execute(
                    update(users).where(users.c.id == known.id).values(team_id=team_id)
                )
            if plan is not None:
                owner, owner_id = (teams, team_id) if team_id else (users, known.id)
                await connection.execute(
                    update(owner).where(owner.c.id == owner_id).values(plan=plan)
                )

    async def _add_key(
        self,
        connection: AsyncConnection,
        key: str,
        user: str,
        team: str | None,
        plan: str | None,
    ) -> None:
        known = await _find_user(connection, user)
        if known is None:
            user_id = await self._add_user(connection, user, team, plan)
        else:
            _must_agree(known, user, team, plan)
            user_id = known.id
        await connection.execute(
            insert(api_keys).values(
                id=self._source.new_id("key_"),
                hash=hash_key(key),
                prefix=shown_part(key),
                user_id=user_id,
                created_at_ms=self._now_ms(),
            )
        )

    async def _add_user(
        self, connection: AsyncConnection, user: str, team: str | None, plan: str | None
    ) -> str:
        team_id = await self._team(connection, team, plan) if team else None
        user_id = self._source.new_id("user_")
        await connection.execute(
            insert(users).values(
                id=user_id,
                name=user,
                team_id=team_id,
                plan=DEFAULT if team_id else plan or DEFAULT,
                created_at_ms=self._now_ms(),
            )
        )
        return user_id

    async def _team(self, connection: AsyncConnection, team: str, plan: str | None = None) -> str:
        """Return the id of a team, made when it is new; a known one must have `plan`, if given."""
        query = select(teams.c.id, teams.c.plan).where(teams.c.name == team)
        known = (await connection.execute(query)).one_or_none()
        if known is not None:
            if plan not in (None, known.plan):
                raise _other("plan", f"team {team!r} has the plan {known.plan}")
            return str(known.id)
        team_id = self._source.new_id("team_")
        await connection.execute(
            insert(teams).values(
                id=team_id, name=team, plan=plan or DEFAULT, created_at_ms=self._now_ms()
            )
        )
        return team_id

    def _now_ms(self) -> int:
        return int(self._source.now() * 1000)


def _keys() -> Select[Any]:
    return select(
        api_keys.c.id,
        api_keys.c.prefix,
        users.c.name,
        func.coalesce(teams.c.name, ""),
        _plan,
        api_keys.c.created_at_ms,
        api_keys.c.revoked_at_ms,
    ).select_from(api_keys.join(users).outerjoin(teams))


async def _find_user(connection: AsyncConnection, user: str) -> _User | None:
    row = (
        await connection.execute(
            select(users.c.id, users.c.team_id, teams.c.name, _plan)
            .select_from(users.outerjoin(teams))
            .where(users.c.name == user)
        )
    ).one_or_none()
    return None if row is None else _User(*row)


def _check(*, user: str, team: str | None, plan: str | None) -> None:
    for field, name in (("user", user), ("team", team)):
        if name is not None and not _NAME.fullmatch(name):
            raise invalid(
                field,
                f"{field}: takes 1 to 64 letters, digits and . _ @ + -, "
                "the first a letter or digit",
            )
    if plan is not None and plan not in PLANS:
        raise invalid("plan", f"plan: takes one of {', '.join(PLANS)}")


def _must_agree(known: _User, user: str, team: str | None, plan: str | None) -> None:
    if team is not None and team != known.team:
        where = f"in team {known.team!r}" if known.team else "in no team"
        raise _other("team", f"user {user!r} is {where}")
    if plan is not None and plan != known.plan:
        raise _other("plan", f"user {user!r} has the plan {known.plan}")


def _nobody(user: str) -> GatewayError:
    return invalid("user", f"user: nobody is called {user!r}; `keys create` makes users")


def _other(field: str, fact: str) -> GatewayError:
    return invalid(field, f"{field}: {fact}; `users set` changes it")
