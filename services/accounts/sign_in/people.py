"""People of an issuer as users of the gateway, each with a record of a key that nobody has.

The record's hash is that of the issuer and the person's id there: it finds the person's user, and
no API key has it. Revoking or disabling the record ends the person's access, as with any key.
"""

import hashlib
from typing import NamedTuple
from urllib.parse import urlsplit

from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.admin.audit import Actor, Subject, record
from services.accounts.admin.users import UserAdministration
from services.accounts.membership import add_user, find_user
from services.accounts.repository import AccountRepository
from services.accounts.sign_in.claims import Person
from services.accounts.sign_in.roles import role_by_issuer
from services.accounts.tables import SIGN_IN_PREFIX, api_keys, teams, users
from services.common import ids
from services.common.clock import Clock
from services.common.errors import permission_denied
from services.common.grpc.authentication import Caller
from services.common.storage.database import reading_once, writing_alone


class KnownPerson(NamedTuple):
    """The user of a person: the id of the record of the key, and the names of user and team."""

    key_id: str
    user: str
    team: str


class People:
    """People of the issuer in the database.

    Args:
        engine: the database.
        clock: the clock.
        accounts: users and keys.
        link_users: whether people sign in as users of their name who were made otherwise.
        default_role: role of people who have no other, or "".
        new_id: generates ids.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock,
        accounts: AccountRepository,
        *,
        link_users: bool,
        default_role: str,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._accounts = accounts
        self._link_users = link_users
        self._default_role = default_role
        self._new_id = new_id
        self._users = UserAdministration(engine, clock, new_id=new_id)

    async def owner_of(self, person: Person, *, is_invited: bool = False) -> Caller:
        """Return the person as a caller; the user, the team and the record are made if necessary.

        Args:
            person: the person.
            is_invited: whether an invitation is about to give the person a role.

        Raises:
            GatewayError: permission_denied, when another user has the person's name, or a new
                person would have no role; invalid_api_key, when the record of the person's key is
                not valid.
        """
        key_id = await self._key_of(person, is_invited=is_invited)
        return await self._accounts.identify_by_id(key_id, is_valid=True)

    def role_of(self, person: Person, account_role: str) -> str:
        """Return the role of a person.

        Args:
            person: the person.
            account_role: the role that is set for the person's user, or "".

        Raises:
            GatewayError: permission_denied, when the person has none.
        """
        role = role_by_issuer(person.role, account_role, self._default_role)
        if not role:
            raise permission_denied(
                "you have no role in this gateway; an administrator of the issuer or of the "
                "gateway can give you one"
            )
        return role

    async def _key_of(self, person: Person, *, is_invited: bool) -> str:
        known = await self._find(person)
        if known is None:
            return await self._add(person, is_invited=is_invited)
        if person.team is not None and person.team != known.team:
            await self._users.set(known.user, team=person.team, actor=_actor(person))
        return known.key_id

    async def _find(self, person: Person) -> KnownPerson | None:
        query = (
            select(api_keys.c.id, users.c.name, teams.c.name)
            .select_from(api_keys.join(users).outerjoin(teams))
            .where(api_keys.c.hash == _hash(person))
        )
        async with reading_once(self._engine) as connection:
            row = (await connection.execute(query)).one_or_none()
        return None if row is None else KnownPerson(row[0], row[1], row[2] or "")

    async def _add(self, person: Person, *, is_invited: bool) -> str:
        async with writing_alone(self._engine) as connection:
            mine = select(api_keys.c.id).where(api_keys.c.hash == _hash(person))
            if (key_id := await connection.scalar(mine)) is not None:
                return str(key_id)  # another request of the person was faster
            existing = await find_user(connection, person.name)
            if existing is None:
                if not is_invited:
                    self.role_of(person, "")
                user_id = await add_user(
                    *(connection, self._clock, self._new_id),
                    *(person.name, person.team or None, None),
                )
            elif self._link_users:
                user_id = existing.id
            else:
                raise permission_denied(
                    f"another user has the name {person.name!r}; the operator can allow the "
                    "sign-in with console.oidc.link_users, or delete that user"
                )
            key_id = self._new_id("key_")
            name = f"Sign-in at {urlsplit(person.issuer).hostname}"
            await connection.execute(
                insert(api_keys).values(
                    id=key_id,
                    hash=_hash(person),
                    prefix=SIGN_IN_PREFIX,
                    user_id=user_id,
                    name=name,
                    created_at_ms=self._clock.now_ms(),
                )
            )
            state = {"user_id": user_id, "user": person.name, "name": name}
            await record(
                *(connection, self._clock, self._new_id, _actor(person), "key.create"),
                Subject("key", key_id),
                after=state,
            )
        if existing is not None and person.team is not None and person.team != existing.team:
            await self._users.set(person.name, team=person.team, actor=_actor(person))
        return key_id


def _actor(person: Person) -> Actor:
    return Actor("sign-in", key_name=person.name)


def _hash(person: Person) -> bytes:
    return hashlib.sha256(f"oidc\n{person.issuer}\n{person.subject}".encode()).digest()
