"""Administration of users in the database."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Select, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.accounts.v1.admin_pb2 import User
from gateway.errors.v1 import errors_pb2
from services.accounts.admin.audit import COMMAND_LINE, Actor, Subject, record
from services.accounts.admin.records import to_record
from services.accounts.limits.repository import delete_limits
from services.accounts.limits.rules import SubjectKind
from services.accounts.membership import KnownUser, add_user, ensure_team, find_user
from services.accounts.names import check_name, check_plan, is_id, unknown_user
from services.accounts.plans import PLANS
from services.accounts.tables import api_keys, plan_in_force, teams, users
from services.common import ids
from services.common.clock import Clock
from services.common.database import reading_once, writing_alone
from services.common.errors import GatewayError, conflict, invalid


class DeletedUser(NamedTuple):
    """A deleted user, and the ids of the user's keys."""

    user: User
    key_ids: Sequence[str]


class UserAdministration:
    """Administration of users in the database.

    Every method raises `unavailable` when the database does not answer.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock | None = None,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._engine = engine
        self._clock = clock or Clock()
        self._new_id = new_id

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
            added = await _find(connection, user_id)
            await record(
                connection,
                self._clock,
                self._new_id,
                actor,
                "user.create",
                Subject("user", user_id),
                after=to_record(added),
            )
            return added

    async def get(self, user_id: str) -> User:
        """Return a user.

        Raises:
            GatewayError: not_found.
        """
        async with reading_once(self._engine) as connection:
            return await _find(connection, user_id)

    async def named(self, name: str) -> User:
        """Return the user with that name.

        Raises:
            GatewayError: invalid_request, when there is no such user.
        """
        if found := await self.page(1, name=name):
            return found[0]
        raise unknown_user(name)

    async def page(
        self, page_size: int, after_id: str = "", *, name: str = "", team: str = ""
    ) -> Sequence[User]:
        """Return the oldest users after an id; "" selects all names and teams."""
        query = _select_users().where(users.c.id > after_id)
        if name:
            query = query.where(users.c.name == name)
        if team:
            query = query.where(teams.c.name == team)
        async with reading_once(self._engine) as connection:
            rows = await connection.execute(query.order_by(users.c.id).limit(page_size))
            return [_to_user(row._mapping) for row in rows]

    async def update(
        self,
        user_id: str,
        team: str | None = None,
        plan: str | None = None,
        actor: Actor = COMMAND_LINE,
    ) -> User:
        """Change the team of a user, and the plan of a user who is in no team afterwards.

        Args:
            user_id: id of the user.
            team: name of the new team, which must exist; "" for none; None for no change.
            plan: the user's new plan; None for no change.
            actor: author of the change.

        Raises:
            GatewayError: not_found; invalid_request, when no change is given, a name is invalid,
                there is no such team, or a plan is given for a user who has the plan of a team.
        """
        _check_changes(team, plan)
        async with writing_alone(self._engine) as connection:
            before = await _find(connection, user_id)
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
            await connection.execute(update(users).where(users.c.id == user_id).values(**values))
            return await self._changed(connection, before, actor)

    async def set(
        self,
        user: str,
        team: str | None = None,
        plan: str | None = None,
        actor: Actor = COMMAND_LINE,
    ) -> User:
        """Move the user with that name to another team, or change the user's effective plan.

        Args:
            user: name of the user.
            team: name of the new team, created if necessary; "" for none; None for no change.
            plan: new plan of the user's team or, without a team, of the user; None for no change.
            actor: author of the change.

        Raises:
            GatewayError: invalid_request, when a name is invalid, the user is unknown, or no change
                is given.
        """
        check_name("user", user)
        _check_changes(team, plan)
        async with writing_alone(self._engine) as connection:
            known = await find_user(connection, user)
            if known is None:
                raise unknown_user(user)
            before = await _find(connection, known.id)
            await self._place(connection, known, team, plan)
            return await self._changed(connection, before, actor)

    async def delete(self, user_id: str, actor: Actor = COMMAND_LINE) -> DeletedUser:
        """Delete a user with the user's keys and limits.

        Data that are stored under the user's id, usage records and the audit log remain.

        Raises:
            GatewayError: not_found.
        """
        async with writing_alone(self._engine) as connection:
            before = await _find(connection, user_id)
            of_user = api_keys.c.user_id == user_id
            key_ids = (
                (await connection.execute(select(api_keys.c.id).where(of_user).order_by("id")))
                .scalars()
                .all()
            )
            await delete_limits(connection, SubjectKind.KEY, key_ids)
            await delete_limits(connection, SubjectKind.USER, [user_id])
            await connection.execute(delete(api_keys).where(of_user))
            await connection.execute(delete(users).where(users.c.id == user_id))
            await record(
                connection,
                self._clock,
                self._new_id,
                actor,
                "user.delete",
                Subject("user", user_id),
                before={**to_record(before), "key_ids": [*key_ids]},
            )
            return DeletedUser(before, key_ids)

    async def _place(
        self, connection: AsyncConnection, known: KnownUser, team: str | None, plan: str | None
    ) -> None:
        team_id = known.team_id
        if team is not None:
            team_id = (
                await ensure_team(connection, self._clock, self._new_id, team) if team else None
            )
            await connection.execute(
                update(users).where(users.c.id == known.id).values(team_id=team_id)
            )
        if plan is not None:
            owner, owner_id = (teams, team_id) if team_id else (users, known.id)
            await connection.execute(update(owner).where(owner.c.id == owner_id).values(plan=plan))

    async def _changed(self, connection: AsyncConnection, before: User, actor: Actor) -> User:
        after = await _find(connection, before.id)
        await record(
            connection,
            self._clock,
            self._new_id,
            actor,
            "user.update",
            Subject("user", before.id),
            before=to_record(before),
            after=to_record(after),
        )
        return after


def _check_changes(team: str | None, plan: str | None) -> None:
    if team is None and plan is None:
        raise invalid("team", "team, plan: at least one is required")
    if team:
        check_name("team", team)
    if plan is not None:
        check_plan(plan)


async def _team_id(connection: AsyncConnection, name: str) -> str:
    team_id = await connection.scalar(select(teams.c.id).where(teams.c.name == name))
    if team_id is None:
        raise invalid("team", f"team: no team {name!r}")
    return str(team_id)


def _select_users() -> Select[Any]:
    return select(
        users.c.id,
        users.c.name,
        users.c.team_id,
        teams.c.name.label("team"),
        plan_in_force.label("plan"),
        users.c.created_at_ms,
    ).select_from(users.outerjoin(teams))


async def _find(connection: AsyncConnection, user_id: str) -> User:
    row = None
    if is_id(user_id):
        row = (await connection.execute(_select_users().where(users.c.id == user_id))).one_or_none()
    if row is None:
        raise GatewayError(errors_pb2.REASON_NOT_FOUND, "user_id: no such user", param="user_id")
    return _to_user(row._mapping)


def _to_user(row: Mapping[str, Any]) -> User:
    return User(
        id=row["id"],
        name=row["name"],
        team_id=row["team_id"] or "",
        team=row["team"] or "",
        plan=PLANS[row["plan"]],
        created_at_ms=row["created_at_ms"],
    )
