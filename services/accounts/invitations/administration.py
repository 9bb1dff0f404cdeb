"""Invitations in the database, as administrators make, list and revoke them.

The token of an invitation is `gwinvite-` and 32 random bytes in base64url. Only its SHA-256 is
stored.
"""

import base64
import hashlib
import secrets as randomness
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, delete, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.accounts.v1 import invitations_pb2
from gateway.accounts.v1.accounts_pb2 import PLAN_UNSPECIFIED
from gateway.accounts.v1.invitations_pb2 import Invitation
from services.accounts.admin.audit import COMMAND_LINE, Actor, Record
from services.accounts.admin.records import role_number, to_record
from services.accounts.admin.subjects import SubjectAdministration
from services.accounts.invitations.tables import invitations
from services.accounts.membership import ensure_team, find_user
from services.accounts.names import check_name, check_plan
from services.accounts.plans import PLANS
from services.accounts.tables import teams
from services.common import ids
from services.common.clock import Clock
from services.common.errors import conflict, invalid
from services.common.storage.database import write, writing_alone

TOKEN_PREFIX = "gwinvite-"
DEFAULT_LIFETIME_MS = 7 * 86_400_000
MAX_LIFETIME_MS = 90 * 86_400_000
# Invitations that nobody has accepted: of all administrators, and of one who administers a team.
MAX_UNACCEPTED = 1_000
MAX_UNACCEPTED_OF_TEAM_ADMIN = 100
# How long an invitation stays in lists after its end.
SHOWN_AFTER_END_MS = 7 * 86_400_000
_RANDOM_BYTES = 32


@dataclass(frozen=True, slots=True)
class NewInvitation:
    """Parameters of an invitation to create.

    Attributes:
        role: one of `roles.ROLES`.
        user: name or address of the person, or "".
        team: name of the team, which is created if necessary, or "".
        plan: plan of a new team or, without a team, of the user; None for the default.
        expires_at_ms: end in Unix milliseconds, or None for the default.
    """

    role: str
    user: str = ""
    team: str = ""
    plan: str | None = None
    expires_at_ms: int | None = None


class CreatedInvitation(NamedTuple):
    """A new invitation, and its token."""

    token: str
    invitation: Invitation


class InvitationAdministration(SubjectAdministration[Invitation]):
    """Administration of invitations in the database.

    Args:
        engine: the database.
        clock: the clock.
        has_issuer: whether people sign in at an issuer, so that known users can be invited.
        random_bytes: source of random bytes.
        new_id: generates ids.
    """

    kind = "invitation"
    table = invitations

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock | None = None,
        *,
        has_issuer: bool,
        random_bytes: Callable[[int], bytes] = randomness.token_bytes,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        super().__init__(engine, clock, new_id=new_id)
        self._has_issuer = has_issuer
        self._random_bytes = random_bytes

    def _select(self) -> Select[Any]:
        return select_invitations()

    def _from_row(self, row: Mapping[str, Any]) -> Invitation:
        return to_invitation(row, self._clock.now_ms())

    def _to_record(self, subject: Invitation) -> Record:
        return to_record(subject)

    async def create(
        self, new: NewInvitation, actor: Actor = COMMAND_LINE, *, is_of_team: bool = False
    ) -> CreatedInvitation:
        """Create an invitation, and its team if that is new.

        Args:
            new: the invitation.
            actor: author of the change.
            is_of_team: whether the author administers a team alone.

        Raises:
            GatewayError: invalid_request, when a field is invalid or a team has another plan;
                conflict, when a user has the name, or there are too many invitations.
        """
        now_ms = self._clock.now_ms()
        expires_at_ms = new.expires_at_ms or now_ms + DEFAULT_LIFETIME_MS
        if not now_ms < expires_at_ms <= now_ms + MAX_LIFETIME_MS:
            raise invalid(
                "expires_at_ms", "expires_at_ms: must be in the future, at most 90 days ahead"
            )
        if new.user:
            check_name("user", new.user)
        if new.plan is not None:
            check_plan(new.plan)
        token = TOKEN_PREFIX + _text(self._random_bytes(_RANDOM_BYTES))
        invitation_id = self._new_id("invitation_")
        async with writing_alone(self._engine) as connection:
            await self._check_room(connection, actor, is_of_team=is_of_team)
            if new.user and not self._has_issuer and await find_user(connection, new.user):
                raise conflict("user", f"user: a user named {new.user!r} already exists")
            team_id, plan = None, new.plan
            if new.team:
                team_id = await ensure_team(
                    connection, self._clock, self._new_id, new.team, new.plan
                )
                plan = None
            await connection.execute(
                insert(invitations).values(
                    id=invitation_id,
                    hash=hash_token(token),
                    role=new.role,
                    user_name=new.user,
                    team_id=team_id,
                    plan=plan,
                    created_by=actor.name,
                    created_by_name=actor.key_name,
                    created_at_ms=now_ms,
                    expires_at_ms=expires_at_ms,
                )
            )
            created = await self._created(connection, invitation_id, actor)
        return CreatedInvitation(token, created)

    async def page(
        self, page_size: int, after_id: str = "", *, team: str = ""
    ) -> Sequence[Invitation]:
        """Return the oldest invitations after an id; "" selects all teams."""
        return await self._page(page_size, after_id, (teams.c.name, team))

    async def revoke(self, invitation_id: str, actor: Actor = COMMAND_LINE) -> Invitation:
        """Remove an invitation; return it.

        Raises:
            GatewayError: not_found.
        """
        async with writing_alone(self._engine) as connection:
            before = await self._find(connection, invitation_id)
            of_id = invitations.c.id == invitation_id
            await connection.execute(delete(invitations).where(of_id))
            await self._deleted(connection, before, actor)
            return before

    async def remove_ended(self, at_most: int) -> int:
        """Remove invitations that ended long ago; return their number."""
        cutoff = self._clock.now_ms() - SHOWN_AFTER_END_MS
        some = select(invitations.c.id).where(invitations.c.expires_at_ms < cutoff).limit(at_most)
        ended = delete(invitations).where(invitations.c.id.in_(some))
        return (await write(self._engine, lambda connection: connection.execute(ended))).rowcount

    async def _check_room(
        self, connection: AsyncConnection, actor: Actor, *, is_of_team: bool
    ) -> None:
        conditions: list[ColumnElement[bool]] = [invitations.c.accepted_at_ms.is_(None)]
        most = MAX_UNACCEPTED
        if is_of_team:
            conditions.append(invitations.c.created_by == actor.name)
            most = MAX_UNACCEPTED_OF_TEAM_ADMIN
        count = select(func.count()).select_from(invitations).where(*conditions)
        if (await connection.scalar(count) or 0) >= most:
            raise conflict(
                "user",
                f"user: {most:,} invitations wait for their acceptance; revoke some of them first",
            )


def select_invitations() -> Select[Any]:
    """Return a query for invitations with their teams, whose rows `to_invitation` converts."""
    return select(invitations, teams.c.name.label("team")).select_from(invitations.outerjoin(teams))


def to_invitation(row: Mapping[str, Any], now_ms: int) -> Invitation:
    """Return the invitation of a row of `select_invitations`."""
    return Invitation(
        id=row["id"],
        role=role_number(row["role"]),
        user=row["user_name"],
        team_id=row["team_id"] or "",
        team=row["team"] or "",
        plan=PLANS[row["plan"]] if row["plan"] else PLAN_UNSPECIFIED,
        created_by=row["created_by"],
        created_by_name=row["created_by_name"],
        created_at_ms=row["created_at_ms"],
        expires_at_ms=row["expires_at_ms"],
        accepted_at_ms=row["accepted_at_ms"],
        accepted_user_id=row["accepted_user_id"] or "",
        state=_state(row, now_ms),
    )


def hash_token(token: str) -> bytes:
    """Return the stored hash of a token: 32 bytes."""
    return hashlib.sha256(token.encode()).digest()


def _state(row: Mapping[str, Any], now_ms: int) -> invitations_pb2.InvitationState.ValueType:
    if row["accepted_at_ms"] is not None:
        return invitations_pb2.INVITATION_STATE_ACCEPTED
    if row["expires_at_ms"] <= now_ms:
        return invitations_pb2.INVITATION_STATE_EXPIRED
    return invitations_pb2.INVITATION_STATE_OPEN


def _text(random: bytes) -> str:
    return base64.urlsafe_b64encode(random).rstrip(b"=").decode()
