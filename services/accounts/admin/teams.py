"""Administration of teams in the database."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Select, delete, func, select

from gateway.accounts.v1.admin_pb2 import Team
from services.accounts.admin.audit import COMMAND_LINE, Actor, Record
from services.accounts.admin.records import to_record
from services.accounts.admin.subjects import SubjectAdministration
from services.accounts.invitations.tables import invitations
from services.accounts.limits.repository import delete_limits
from services.accounts.limits.rules import SubjectKind
from services.accounts.membership import ensure_team
from services.accounts.names import check_name, check_plan
from services.accounts.plans import PLANS
from services.accounts.tables import teams, users
from services.common.errors import conflict, invalid
from services.common.storage.database import writing_alone


class TeamAdministration(SubjectAdministration[Team]):
    """Administration of teams in the database."""

    kind = "team"
    table = teams

    def _select(self) -> Select[Any]:
        members = select(func.count()).where(users.c.team_id == teams.c.id).scalar_subquery()
        return select(teams, members.label("users"))

    def _from_row(self, row: Mapping[str, Any]) -> Team:
        return Team(
            id=row["id"],
            name=row["name"],
            plan=PLANS[row["plan"]],
            users=row["users"],
            created_at_ms=row["created_at_ms"],
        )

    def _to_record(self, subject: Team) -> Record:
        return to_record(subject)

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
            return await self._created(connection, team_id, actor)

    async def named(self, name: str) -> Team:
        """Return the team with that name.

        Raises:
            GatewayError: invalid_request, when there is no such team.
        """
        if matches := await self.page(1, name=name):
            return matches[0]
        raise invalid("team", f"team: no team {name!r}; `teams list` shows all teams")

    async def page(self, page_size: int, after_id: str = "", *, name: str = "") -> Sequence[Team]:
        """Return the oldest teams after an id; "" selects all names."""
        return await self._page(page_size, after_id, (teams.c.name, name))

    async def update(self, team_id: str, plan: str, actor: Actor = COMMAND_LINE) -> Team:
        """Set the plan of a team.

        Raises:
            GatewayError: not_found; invalid_request, when there is no such plan.
        """
        check_plan(plan)
        async with writing_alone(self._engine) as connection:
            before = await self._find(connection, team_id)
            return await self._change(connection, before, {"plan": plan}, actor)

    async def delete(self, team_id: str, actor: Actor = COMMAND_LINE) -> Team:
        """Delete a team without users, its limits and invitations; return the deleted team.

        Usage records and the audit log remain under its id.

        Raises:
            GatewayError: not_found; conflict, when the team has users.
        """
        async with writing_alone(self._engine) as connection:
            before = await self._find(connection, team_id)
            if before.users:
                raise conflict(
                    "team_id",
                    f"team_id: the team has users ({before.users:,}); move or delete them first",
                )
            await delete_limits(connection, SubjectKind.TEAM, [team_id])
            await connection.execute(delete(invitations).where(invitations.c.team_id == team_id))
            await connection.execute(delete(teams).where(teams.c.id == team_id))
            await self._deleted(connection, before, actor)
            return before
