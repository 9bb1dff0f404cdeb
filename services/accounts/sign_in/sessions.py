"""Sessions of the console in the database.

The token of a session is `gwsession-` and 32 random bytes in base64url. Only its SHA-256 is stored.
A session ends after `console.session_idle_s` without a request, `console.session_ttl_s` after it
began, with its key, and when the person signs out.
"""

import base64
import hashlib
import secrets as randomness
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Row, delete, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.accounts.admin.audit import Actor, Subject, record
from services.accounts.repository import AccountRepository
from services.accounts.sign_in.roles import role_by_issuer, role_by_key
from services.accounts.sign_in.tables import sessions
from services.accounts.tables import api_keys, teams, users
from services.common import ids
from services.common.clock import Clock
from services.common.errors import GatewayError, invalid_api_key
from services.common.grpc.authentication import Caller, SignIn
from services.common.key_format import SESSION_PREFIX
from services.common.settings import Console
from services.common.storage.database import reading_once, writing

# Sessions of one key; the oldest ends when another one begins.
MAX_OF_KEY = 50
# Ended sessions that are removed when another one begins.
_REMOVED_AT_ONCE = 100
# The time of the last request is written when this part of the idle time has passed.
_TOUCHED_PART = 1 / 20
_RANDOM_BYTES = 32
# How people sign in, as the table names it.
LINK, KEY, OIDC = "link", "key", "oidc"


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session that has begun.

    Attributes:
        id: its id.
        token: its token.
    """

    id: str
    token: str


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session as `ConsoleSessionRepository.get` returns it.

    Attributes:
        user_id: id of the user.
        user: name of the user.
        team: name of the user's team, or "".
        role: one of `roles.ROLES`.
        method: how the person signed in: link, key or oidc.
        ends_at_ms: when it ends at the latest, in Unix milliseconds.
    """

    user_id: str
    user: str
    team: str
    role: str
    method: str
    ends_at_ms: int


class ConsoleSessionRepository:
    """Sessions in the database.

    Args:
        engine: the database.
        clock: the clock.
        settings: how long sessions last.
        random_bytes: source of random bytes.
        new_id: generates ids.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock,
        settings: Console,
        random_bytes: Callable[[int], bytes] = randomness.token_bytes,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._accounts = AccountRepository(engine, clock)
        self._idle_ms = int(1000 * settings.session_idle_s)
        self._ttl_ms = int(1000 * settings.session_ttl_s)
        self._default_role = settings.oidc.default_role
        self._random_bytes = random_bytes
        self._new_id = new_id

    async def create(self, key_id: str, role: str, method: str, actor: Actor) -> NewSession:
        """Begin a session.

        Args:
            key_id: id of the valid key to which it belongs.
            role: one of `roles.ROLES`, which stays; "" if that of the user counts.
            method: how the person signed in: link, key or oidc.
            actor: the person, for the audit log.
        """
        session = NewSession(self._new_id("session_"), self._make_token())
        now_ms = self._clock.now_ms()
        async with writing(self._engine) as connection:
            await self._make_room(connection, key_id, now_ms)
            await connection.execute(
                insert(sessions).values(
                    id=session.id,
                    hash=_hash(session.token),
                    key_id=key_id,
                    role=role or None,
                    method=method,
                    created_at_ms=now_ms,
                    used_at_ms=now_ms,
                    ends_at_ms=now_ms + self._ttl_ms,
                )
            )
            state = {"key_id": key_id, "role": role, "method": method}
            await self._record(connection, actor, "create", session.id, after=state)
        return session

    async def identify(self, token: str) -> Caller:
        """Return the person of a session, with the key's limits.

        Raises:
            GatewayError: invalid_api_key, when the session or its key has ended.
        """
        now_ms = self._clock.now_ms()
        query = select(
            sessions.c.id,
            sessions.c.key_id,
            sessions.c.role,
            sessions.c.admin_key_id,
            sessions.c.used_at_ms,
            sessions.c.method,
            users.c.name,
        ).select_from(sessions.join(api_keys).join(users))
        query = query.where(
            sessions.c.hash == _hash(token),
            sessions.c.ends_at_ms > now_ms,
            sessions.c.used_at_ms > now_ms - self._idle_ms,
        )
        async with reading_once(self._engine) as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            raise ended()
        owner = await self._accounts.identify_by_id(row.key_id, is_valid=True)
        role = row.role or self._role(row.method, owner.role, is_for_sign_in=owner.is_for_sign_in)
        if now_ms - row.used_at_ms > self._idle_ms * _TOUCHED_PART:
            await self._touch(row, now_ms)
        return replace(owner, sign_in=SignIn(row.id, row.name, role, row.admin_key_id))

    async def get(self, session_id: str) -> StoredSession:
        """Return a session.

        Raises:
            GatewayError: invalid_api_key, when it has ended.
        """
        query = (
            select(
                users.c.id,
                users.c.name,
                teams.c.name.label("team"),
                sessions.c.role,
                sessions.c.method,
                sessions.c.ends_at_ms,
                users.c.role.label("account_role"),
                api_keys.c.for_sign_in,
            )
            .select_from(sessions.join(api_keys).join(users).outerjoin(teams))
            .where(sessions.c.id == session_id)
        )
        async with reading_once(self._engine) as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            raise ended()
        role = row.role or self._role(
            row.method, row.account_role or "", is_for_sign_in=row.for_sign_in
        )
        return StoredSession(row.id, row.name, row.team or "", role, row.method, row.ends_at_ms)

    def _role(self, method: str, account_role: str, *, is_for_sign_in: bool) -> str:
        """Return the role of a session that has that of its user.

        Raises:
            GatewayError: invalid_api_key, when the user has no role any more.
        """
        if method != OIDC:
            return role_by_key(account_role, is_for_sign_in=is_for_sign_in)
        role = role_by_issuer("", account_role, self._default_role)
        if not role:
            raise ended()
        return role

    async def unlock(self, session_id: str, admin_key_id: str, actor: Actor) -> str:
        """Open to a session what an admin key opens; return its new token.

        Raises:
            GatewayError: invalid_api_key, when the session has ended.
        """
        token = self._make_token()
        values = {"admin_key_id": admin_key_id, "hash": _hash(token)}
        async with writing(self._engine) as connection:
            changed = await connection.execute(
                update(sessions).where(sessions.c.id == session_id).values(values)
            )
            if not changed.rowcount:
                raise ended()
            state = {"admin_key_id": admin_key_id}
            await self._record(connection, actor, "unlock", session_id, after=state)
        return token

    async def end(self, session_id: str, actor: Actor) -> None:
        """End a session."""
        async with writing(self._engine) as connection:
            await connection.execute(delete(sessions).where(sessions.c.id == session_id))
            await self._record(connection, actor, "end", session_id)

    async def _make_room(self, connection: AsyncConnection, key_id: str, now_ms: int) -> None:
        """Remove sessions that have ended, and the oldest of a key that has too many."""
        has_ended = or_(
            sessions.c.ends_at_ms <= now_ms, sessions.c.used_at_ms <= now_ms - self._idle_ms
        )
        some = select(sessions.c.id).where(has_ended).limit(_REMOVED_AT_ONCE)
        await connection.execute(delete(sessions).where(sessions.c.id.in_(some)))
        newest_first = (
            select(sessions.c.id)
            .where(sessions.c.key_id == key_id)
            .order_by(sessions.c.created_at_ms.desc(), sessions.c.id.desc())
        )
        surplus = (await connection.scalars(newest_first.offset(MAX_OF_KEY - 1))).all()
        if surplus:
            await connection.execute(delete(sessions).where(sessions.c.id.in_(surplus)))

    async def _touch(self, row: Row[*tuple[Any, ...]], now_ms: int) -> None:
        async with writing(self._engine, is_lasting=False) as connection:
            await connection.execute(
                update(sessions).where(sessions.c.id == row.id).values(used_at_ms=now_ms)
            )

    async def _record(
        self,
        connection: AsyncConnection,
        actor: Actor,
        action: str,
        session_id: str,
        after: dict[str, str] | None = None,
    ) -> None:
        subject = Subject("session", session_id)
        await record(
            *(connection, self._clock, self._new_id, actor, f"session.{action}", subject),
            after=after,
        )

    def _make_token(self) -> str:
        random = self._random_bytes(_RANDOM_BYTES)
        return SESSION_PREFIX + base64.urlsafe_b64encode(random).rstrip(b"=").decode()


def ended() -> GatewayError:
    """Return the error of a session that has ended."""
    return invalid_api_key("the session has ended; sign in again")


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
