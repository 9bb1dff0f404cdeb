"""Administration of teams in the database."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Select, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.accounts.v1.admin_pb2 import Team
from gateway.errors.v1 import errors_pb2
from services.accounts.admin.audit import COMMAND_LINE, Actor, Subject, record
from services.accounts.admin.records import to_record
from services.accounts.limits.repository import delete_limits
from services.accounts.limits.rules import SubjectKind
from services.accounts.membership import ensure_team
from services.accounts.names import check_name, check_plan, is_id
from services.accounts.plans import PLANS
from services.accounts.tables import teams, users
from services.common import ids
from services.common.clock import Clock
from services.common.database import reading_once, writing_alone
from services.common.errors import GatewayError, conflict, invalid


class TeamAdministration:
    """Administration of teams in the database.

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

    async def create(self, name: str, plan: str | None = None, actor: Actor = COMMAND_LINE) -> Team:
        """Create a team without members; its default plan is `personal_free`.

        Raises:
            GatewayError: invalid_request, when a name is invalid; conflict, when the name is in
                use.
        """
        check_name("name", name)
        async with writing_alone(self._engine) as connection:
            if await connection.scalar(select(teams.c.id).where(teams.c.name == name)) is not None:
                raise conflict("name", f"name: a team named {name!r} already exists")
            team_id = await ensure_team(connection, self._clock, self._new_id, name, plan)
            added = await _find(connection, team_id)
            await record(
                connection,
                self._clock,
                self._new_id,
                actor,
                "team.create",
                Subject("team", team_id),
                after=to_record(added),
            )
            return added

    async def get(self, team_id: str) -> Team:
        """Return a team.

        Raises:
            GatewayError: not_found.
        """
        async with reading_once(self._engine) as connection:
            return await _find(connection, team_id)

    async def named(self, name: str) -> Team:
        """Return the team with that name.

        Raises:
            GatewayError: invalid_request, when there is no such team.
        """
        if found := await self.page(1, name=name):
            return found[0]
        raise invalid("team", f"team: no team {name!r}; `teams list` shows all teams")

    async def page(self, page_size: int, after_id: str = "", *, name: str = "") -> Sequence[Team]:
        """Return the oldest teams after an id; "" selects all names."""
        query = _select_teams().where(teams.c.id > after_id)
        if name:
            query = query.where(teams.c.name == name)
        async with reading_once(self._engine) as connection:
            rows = await connection.execute(query.order_by(teams.c.id).limit(page_size))
            return [_to_team(row._mapping) for row in rows]

    async def update(self, team_id: str, plan: str, actor: Actor = COMMAND_LINE) -> Team:
        """Set the plan of a team.

        Raises:
            GatewayError: not_found; invalid_request, when there is no such plan.
        """
        check_plan(plan)
        async with writing_alone(self._engine) as connection:
            before = await _find(connection, team_id)
            await connection.execute(update(teams).where(teams.c.id == team_id).values(plan=plan))
            after = await _find(connection, team_id)
            await record(
                connection,
                self._clock,
                self._new_id,
                actor,
                "team.update",
                Subject("team", team_id),
                before=to_record(before),
                after=to_record(after),
            )
            return after

    async def delete(self, team_id: str, actor: Actor = COMMAND_LINE) -> Team:
        """Delete a team without users, and its limits; return the deleted team.

        Usage records and the audit log remain under its id.

        Raises:
            GatewayError: not_found; conflict, when the team has users.
        """
        async with writing_alone(self._engine) as connection:
            before = await _find(connection, team_id)
            if before.users:
                raise conflict(
                    "team_id",
                    f"team_id: the team has users ({before.users:,}); move or delete them first",
                )
            await delete_limits(connection, SubjectKind.TEAM, [team_id])
            await connection.execute(delete(teams).where(teams.c.id == team_id))
            await record(
                connection,
                self._clock,
                self._new_id,
                actor,
                "team.delete",
                Subject("team", team_id),
                before=to_record(before),
            )
            return before


def _select_teams() -> Select[Any]:
    members = select(func.count()).where(users.c.team_id == teams.c.id).scalar_subquery()
    return select(teams, members.label("users"))


async def _find(connection: AsyncConnection, team_id: str) -> Team:
    row = None
    if is_id(team_id):
        row = (await connection.execute(_select_teams().where(teams.c.id == team_id))).one_or_none()
    if row is None:
        raise GatewayError(errors_pb2.REASON_NOT_FOUND, "team_id: no such team", param="team_id")
    return _to_team(row._mapping)


def _to_team(row: Mapping[str, Any]) -> Team:
    return Team(
        id=row["id"],
        name=row["name"],
        plan=PLANS[row["plan"]],
        users=row["users"],
        created_at_ms=row["created_at_ms"],
    )
