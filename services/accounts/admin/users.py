"""Administration of users in the database."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Select, delete, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.accounts.v1.admin_pb2 import Erasure, User
from gateway.accounts.v1.sessions_pb2 import ROLE_ADMIN
from services.accounts.admin.audit import COMMAND_LINE, Actor, Record
from services.accounts.admin.last_administrator import check_another_administrator
from services.accounts.admin.records import role_number, to_record
from services.accounts.admin.subjects import SubjectAdministration
from services.accounts.erasure.repository import add_to_report, begin_erasure, find_erasure
from services.accounts.invitations.tables import invitations
from services.accounts.limits.repository import delete_end_user_limits, delete_limits
from services.accounts.limits.rules import SubjectKind
from services.accounts.membership import KnownUser, add_user, ensure_team, find_user
from services.accounts.names import check_name, check_plan, unknown_user
from services.accounts.plans import PLANS
from services.accounts.sign_in.tables import sessions
from services.accounts.tables import api_keys, audit_log, plan_in_force, teams, users
from services.common.errors import conflict, invalid
from services.common.grpc.roles import ADMIN
from services.common.storage.database import writing_alone


class DeletedUser(NamedTuple):
    """A deleted user, and the ids of the user's keys."""

    user: User
    key_ids: Sequence[str]


class UserAdministration(SubjectAdministration[User]):
    """Administration of users in the database."""

    kind = "user"
    table = users

    def _select(self) -> Select[Any]:
        return select(
            users.c.id,
            users.c.name,
            users.c.team_id,
            teams.c.name.label("team"),
            plan_in_force.label("plan"),
            users.c.created_at_ms,
            users.c.role,
        ).select_from(users.outerjoin(teams))

    def _from_row(self, row: Mapping[str, Any]) -> User:
        return User(
            id=row["id"],
            name=row["name"],
            team_id=row["team_id"] or "",
            team=row["team"] or "",
            plan=PLANS[row["plan"]],
            created_at_ms=row["created_at_ms"],
            role=role_number(row["role"] or ""),
        )

    def _to_record(self, subject: User) -> Record:
        return to_record(subject)

    async def create(
        self,
        name: str,
        team: str | None = None,
        plan: str | None = None,
        actor: Actor = COMMAND_LINE,
    ) -> User:
        """Create a user without a key, and the team if it is new.

        Args:
            name: name of the user.
            team: name of the user's team, or None.
            plan: plan of a new team or, without a team, of the user; None for `personal_free`.
            actor: author of the change.

        Raises:
            GatewayError: invalid_request, when a name is invalid or the team has another plan;
                conflict, when the name is in use.
        """
        check_name("name", name)
        async with writing_alone(self._engine) as connection:
            if await find_user(connection, name) is not None:
                raise conflict("name", f"name: a user named {name!r} already exists")
            user_id = await add_user(connection, self._clock, self._new_id, name, team, plan)
            return await self._created(connection, user_id, actor)

    async def named(self, name: str) -> User:
        """Return the user with that name.

        Raises:
            GatewayError: invalid_request, when there is no such user.
        """
        if matches := await self.page(1, name=name):
            return matches[0]
        raise unknown_user(name)

    async def page(
        self, page_size: int, after_id: str = "", *, name: str = "", team: str = ""
    ) -> Sequence[User]:
        """Return the oldest users after an id; "" selects all names and teams."""
        filters = (users.c.name, name), (teams.c.name, team)
        return await self._page(page_size, after_id, *filters)

    async def update(
        self,
        user_id: str,
        team: str | None = None,
        plan: str | None = None,
        actor: Actor = COMMAND_LINE,
        *,
        role: str | None = None,
    ) -> User:
        """Change the team and the role of a user, and the plan of one who is in no team then.

        Args:
            user_id: id of the user.
            team: name of the new team, which must exist; "" for none; None for no change.
            plan: the user's new plan; None for no change.
            actor: author of the change.
            role: one of `roles.ROLES`; "" for none; None for no change.

        Raises:
            GatewayError: not_found; invalid_request, when no change is given, a name is invalid,
                there is no such team, or a plan is given for a user who has the plan of a team;
                conflict, as `check_another_administrator`.
        """
        _check_changes(team, plan, role)
        async with writing_alone(self._engine) as connection:
            before = await self._find(connection, user_id)
            values: dict[str, object] = {}
            if team is not None:
                values["team_id"] = await _team_id(connection, team) if team else None
            if plan is not None:
                if before.team if team is None else team:
                    raise invalid(
                        "plan",
                        "plan: the user has the plan of the team; set the plan of the team instead",
                    )
                values["plan"] = plan
            if role is not None:
                await self._prepare_role(connection, before, role, actor)
                values["role"] = role or None
            return await self._change(connection, before, values, actor)

    async def find(self, connection: AsyncConnection, user_id: str) -> User:
        """Return a user, as `get`, in a transaction of the caller."""
        return await self._find(connection, user_id)

    async def assign(
        self,
        connection: AsyncConnection,
        user_id: str,
        values: Mapping[str, object],
        actor: Actor,
    ) -> User:
        """Set columns of a user in a transaction of the caller, as one change of the audit log.

        Raises:
            GatewayError: not_found.
        """
        before = await self._find(connection, user_id)
        return await self._change(connection, before, values, actor)

    async def set(
        self,
        user: str,
        team: str | None = None,
        plan: str | None = None,
        actor: Actor = COMMAND_LINE,
        *,
        role: str | None = None,
    ) -> User:
        """Change the team, the effective plan or the role of the user with that name.

        Args:
            user: name of the user.
            team: name of the new team, created if necessary; "" for none; None for no change.
            plan: new plan of the user's team or, without a team, of the user; None for no change.
            actor: author of the change.
            role: as in `update`.

        Raises:
            GatewayError: invalid_request, when a name is invalid, the user is unknown, or no change
                is given.
        """
        check_name("user", user)
        _check_changes(team, plan, role)
        async with writing_alone(self._engine) as connection:
            existing = await find_user(connection, user)
            if existing is None:
                raise unknown_user(user)
            before = await self._find(connection, existing.id)
            await self._place(connection, existing, team, plan)
            if role is not None:
                await self._prepare_role(connection, before, role, actor)
                change = update(users).where(users.c.id == existing.id).values(role=role or None)
                await connection.execute(change)
            return await self._changed(connection, before, actor)

    async def delete(self, user_id: str, actor: Actor = COMMAND_LINE) -> DeletedUser:
        """Delete a user with the user's keys and limits.

        Data that are stored under the user's id, usage records and the audit log remain.

        Raises:
            GatewayError: not_found; conflict, as `check_another_administrator`.
        """
        async with writing_alone(self._engine) as connection:
            before = await self._find(connection, user_id)
            await self._check_removed(connection, before, actor)
            key_ids = await _delete_user(connection, user_id)
            await self._deleted(connection, before, actor, key_ids=[*key_ids])
            return DeletedUser(before, key_ids)

    async def erase(self, user_id: str, actor: Actor = COMMAND_LINE) -> Erasure:
        """Delete a user, and begin to erase the user's data, unless that has begun already.

        A user who was deleted before can still be erased, while the audit log knows of it.

        Raises:
            GatewayError: not_found; conflict, as `check_another_administrator`.
        """
        async with writing_alone(self._engine) as connection:
            erasure = await find_erasure(connection, user_id)
            if erasure is not None:
                return erasure
            before: Record | None = None
            key_ids: Sequence[str] = ()
            if not await _was_deleted(connection, user_id):
                user = await self._find(connection, user_id)
                await self._check_removed(connection, user, actor)
                before = self._to_record(user)
                key_ids = await _delete_user(connection, user_id)
            await begin_erasure(connection, user_id, self._clock.now_ms())
            if key_ids:
                await add_to_report(connection, user_id, "keys", len(key_ids))
            state = None if before is None else {**before, "key_ids": [*key_ids]}
            await self._record(connection, actor, "erase", user_id, state, None)
            begun = await find_erasure(connection, user_id)
            assert begun is not None
            return begun

    async def _prepare_role(
        self, connection: AsyncConnection, before: User, role: str, actor: Actor
    ) -> None:
        """Check a change of a role, and withdraw what the user may no longer offer.

        Raises:
            GatewayError: conflict, as `check_another_administrator`.
        """
        if role != ADMIN:
            await self._check_removed(connection, before, actor)
        if role_number(role) < before.role:
            await _withdraw_invitations(connection, before.id)

    async def _check_removed(self, connection: AsyncConnection, user: User, actor: Actor) -> None:
        """Raise an error if the last administrator would be removed."""
        if user.role == ROLE_ADMIN:
            await check_another_administrator(
                *(connection, actor, self._clock.now_ms(), "user_id"), without_user=user.id
            )

    async def _place(
        self, connection: AsyncConnection, user: KnownUser, team: str | None, plan: str | None
    ) -> None:
        team_id = user.team_id
        if team is not None:
            team_id = (
                await ensure_team(connection, self._clock, self._new_id, team) if team else None
            )
            await connection.execute(
                update(users).where(users.c.id == user.id).values(team_id=team_id)
            )
        if plan is not None:
            owner, owner_id = (teams, team_id) if team_id else (users, user.id)
            await connection.execute(update(owner).where(owner.c.id == owner_id).values(plan=plan))


async def _delete_user(connection: AsyncConnection, user_id: str) -> Sequence[str]:
    """Delete a user with the user's keys and limits; return the ids of the keys, sorted."""
    of_user = api_keys.c.user_id == user_id
    query = select(api_keys.c.id).where(of_user).order_by("id")
    key_ids = (await connection.scalars(query)).all()
    await delete_limits(connection, SubjectKind.KEY, key_ids)
    await delete_limits(connection, SubjectKind.USER, [user_id])
    await delete_end_user_limits(connection, user_id)
    of_keys = sessions.c.key_id.in_(select(api_keys.c.id).where(of_user))
    await connection.execute(delete(sessions).where(of_keys))
    names_user = or_(invitations.c.created_by == user_id, invitations.c.accepted_user_id == user_id)
    await connection.execute(delete(invitations).where(names_user))
    await connection.execute(delete(api_keys).where(of_user))
    await connection.execute(delete(users).where(users.c.id == user_id))
    return key_ids


async def _withdraw_invitations(connection: AsyncConnection, user_id: str) -> None:
    """Delete the invitations of a user that nobody has accepted."""
    by_user = invitations.c.created_by == user_id
    unaccepted = invitations.c.accepted_at_ms.is_(None)
    await connection.execute(delete(invitations).where(by_user, unaccepted))


async def _was_deleted(connection: AsyncConnection, user_id: str) -> bool:
    query = select(audit_log.c.id).where(
        audit_log.c.subject_id == user_id, audit_log.c.action == "user.delete"
    )
    return await connection.scalar(query.limit(1)) is not None


def _check_changes(team: str | None, plan: str | None, role: str | None) -> None:
    if team is None and plan is None and role is None:
        raise invalid("team", "team, plan, role: at least one is required")
    if team:
        check_name("team", team)
    if plan is not None:
        check_plan(plan)


async def _team_id(connection: AsyncConnection, name: str) -> str:
    team_id = await connection.scalar(select(teams.c.id).where(teams.c.name == name))
    if team_id is None:
        raise invalid("team", f"team: no team {name!r}")
    return str(team_id)
