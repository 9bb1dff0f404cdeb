"""Invitations as whoever opens their links reads and accepts them."""

from typing import NamedTuple

from sqlalchemy import ColumnElement, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.accounts.v1 import invitations_pb2
from gateway.accounts.v1.invitations_pb2 import Invitation
from gateway.errors.v1 import errors_pb2
from services.accounts.admin.audit import Actor, Subject, record
from services.accounts.admin.keys import CreatedKey, KeyAdministration
from services.accounts.admin.records import plan_name_of, role_name
from services.accounts.admin.users import UserAdministration
from services.accounts.invitations.administration import (
    hash_token,
    select_invitations,
    to_invitation,
)
from services.accounts.invitations.tables import invitations
from services.accounts.membership import add_user, find_user
from services.accounts.names import check_name
from services.common import ids
from services.common.clock import Clock
from services.common.errors import GatewayError, conflict, invalid, permission_denied
from services.common.storage.database import reading_once, writing_alone

_TOKEN_LENGTH = 52


class IssuedName(NamedTuple):
    """What an issuer calls a person.

    Attributes:
        name: name of the person's user.
        email: the address that the issuer has verified, or "".
        decides_team: whether the issuer's claims decide the team.
    """

    name: str
    email: str
    decides_team: bool


class InvitationAcceptance:
    """Accepts invitations.

    Args:
        engine: the database.
        clock: the clock.
        new_id: generates ids.
    """

    def __init__(
        self, engine: AsyncEngine, clock: Clock, *, new_id: ids.IdGenerator = ids.new_id
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._new_id = new_id
        self._keys = KeyAdministration(engine, clock, new_id=new_id)
        self._users = UserAdministration(engine, clock, new_id=new_id)

    async def read(self, token: str) -> Invitation:
        """Return the open invitation with a token; this changes nothing.

        Raises:
            GatewayError: not_found.
        """
        if len(token) != _TOKEN_LENGTH:
            raise _not_open()
        async with reading_once(self._engine) as connection:
            return await self._open(connection, invitations.c.hash == hash_token(token))

    async def accept(self, token: str, name: str, actor: Actor) -> CreatedKey:
        """Create the user of an invitation, with a key for the sign-in.

        Args:
            token: the token of the invitation.
            name: name of the user, "" for that of the invitation.
            actor: author of the change, without the name.

        Raises:
            GatewayError: not_found; invalid_request, when the name is missing, malformed or another
                one; conflict, when a user has the name.
        """
        invitation = await self.read(token)
        if invitation.user and name not in ("", invitation.user):
            raise invalid("user", f"user: the invitation is for {invitation.user!r}")
        name = invitation.user or name
        if not name:
            raise invalid("user", "user: required; choose the name of your user")
        check_name("user", name)
        author = Actor(actor.name, actor.request_id, name, actor.address)
        async with writing_alone(self._engine) as connection:
            invitation = await self._open(connection, invitations.c.id == invitation.id)
            if await find_user(connection, name) is not None:
                raise conflict("user", f"user: a user named {name!r} already exists")
            user_id = await add_user(
                *(connection, self._clock, self._new_id, name, invitation.team or None),
                *(plan_name_of(invitation.plan), role_name(invitation.role)),
            )
            key = await self._keys.insert_for_sign_in(connection, user_id, author)
            await self._close(connection, invitation, user_id, author)
        return key

    async def check(self, invitation_id: str, person: IssuedName) -> None:
        """Raise an error unless an open invitation is for a person of the issuer.

        Raises:
            GatewayError: not_found; permission_denied.
        """
        async with reading_once(self._engine) as connection:
            invitation = await self._open(connection, invitations.c.id == invitation_id)
        _check_person(invitation, person)

    async def bind(self, invitation_id: str, person: IssuedName, user_id: str, actor: Actor) -> str:
        """Apply an invitation to the user of a person of the issuer; return the role.

        Raises:
            GatewayError: not_found; permission_denied, when the invitation is for somebody else.
        """
        async with writing_alone(self._engine) as connection:
            invitation = await self._open(connection, invitations.c.id == invitation_id)
            _check_person(invitation, person)
            user = await self._users.find(connection, user_id)
            # A higher role stays: an invitation takes nothing away.
            role = role_name(max(user.role, invitation.role))
            values: dict[str, object] = {"role": role}
            if invitation.team_id and not person.decides_team:
                values["team_id"] = invitation.team_id
            elif plan := plan_name_of(invitation.plan):
                values["plan"] = plan
            await self._users.assign(connection, user_id, values, actor)
            await self._close(connection, invitation, user_id, actor)
        return role

    async def _open(self, connection: AsyncConnection, which: ColumnElement[bool]) -> Invitation:
        row = (await connection.execute(select_invitations().where(which))).mappings().one_or_none()
        if row is None:
            raise _not_open()
        invitation = to_invitation(dict(row), self._clock.now_ms())
        if invitation.state != invitations_pb2.INVITATION_STATE_OPEN:
            raise _not_open()
        return invitation

    async def _close(
        self, connection: AsyncConnection, invitation: Invitation, user_id: str, actor: Actor
    ) -> None:
        values = {"accepted_at_ms": self._clock.now_ms(), "accepted_user_id": user_id}
        of_id = invitations.c.id == invitation.id
        await connection.execute(update(invitations).where(of_id).values(values))
        state = {"user_id": user_id, "role": role_name(invitation.role)}
        await record(
            *(connection, self._clock, self._new_id, actor, "invitation.accept"),
            Subject("invitation", invitation.id),
            after=state,
        )


def _check_person(invitation: Invitation, person: IssuedName) -> None:
    """Raise an error unless an invitation is for a person.

    Raises:
        GatewayError: permission_denied.
    """
    if not invitation.user:
        return
    if "@" in invitation.user:
        if person.email.casefold() == invitation.user.casefold():
            return
        raise permission_denied(
            f"the invitation is for {invitation.user!r}, which is not the address that the issuer "
            "has verified as yours"
        )
    if person.name != invitation.user:
        raise permission_denied(f"the invitation is for {invitation.user!r}")


def _not_open() -> GatewayError:
    return GatewayError(
        errors_pb2.REASON_NOT_FOUND,
        "token: the invitation has been used or revoked, or has expired; ask for another one",
        param="token",
    )
