"""Users and their teams within a transaction: look them up, and create missing ones.

A user belongs to at most one team. Members of a team have the team's plan; other users have a plan
of their own.
"""

from typing import NamedTuple

from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from services.accounts.names import check_name, check_plan
from services.accounts.plans import DEFAULT
from services.accounts.tables import plan_in_force, teams, users
from services.common.clock import Clock
from services.common.errors import GatewayError, invalid
from services.common.ids import IdGenerator


class KnownUser(NamedTuple):
    """A user in the database; `plan` is the effective plan."""

    id: str
    team_id: str | None
    team: str | None
    plan: str


async def find_user(connection: AsyncConnection, name: str) -> KnownUser | None:
    """Return the user with that name, or None."""
    row = (
        await connection.execute(
            select(users.c.id, users.c.team_id, teams.c.name, plan_in_force)
            .select_from(users.outerjoin(teams))
            .where(users.c.name == name)
        )
    ).one_or_none()
    return None if row is None else KnownUser(*row)


async def ensure_user(
    connection: AsyncConnection,
    clock: Clock,
    new_id: IdGenerator,
    user: str,
    team: str | None,
    plan: str | None,
) -> str:
    """Return the id of a user, who is created if necessary.

    Args:
        connection: a connection of `writing_alone`.
        clock: the clock.
        new_id: generates the ids of users and teams.
        user: name of the user.
        team: name of the user's team. None: no team for a new user, any team for an existing one.
        plan: plan of a new team or, without a team, of a new user. None: `personal_free` for new
            ones, any plan for existing ones.

    Raises:
        GatewayError: invalid_request, when a name is invalid, or an existing user or team has
            another team or plan.
    """
    check_name("user", user)
    existing = await find_user(connection, user)
    if existing is None:
        return await add_user(connection, clock, new_id, user, team, plan)
    _check_names(team, plan)
    if team is not None and team != existing.team:
        where = f"in team {existing.team!r}" if existing.team else "not in a team"
        raise _other("team", f"user {user!r} is {where}")
    if plan is not None and plan != existing.plan:
        raise _other("plan", f"user {user!r} has the plan {existing.plan}")
    return existing.id


async def add_user(
    connection: AsyncConnection,
    clock: Clock,
    new_id: IdGenerator,
    user: str,
    team: str | None,
    plan: str | None,
    role: str | None = None,
) -> str:
    """Create a user with an unused name, like `ensure_user`; return the id."""
    _check_names(team, plan)
    team_id = await ensure_team(connection, clock, new_id, team, plan) if team else None
    user_id = new_id("user_")
    await connection.execute(
        insert(users).values(
            id=user_id,
            name=user,
            team_id=team_id,
            plan=DEFAULT if team_id else plan or DEFAULT,
            created_at_ms=clock.now_ms(),
            role=role,
        )
    )
    return user_id


async def ensure_team(
    connection: AsyncConnection,
    clock: Clock,
    new_id: IdGenerator,
    team: str,
    plan: str | None = None,
) -> str:
    """Return the id of a team, created if necessary; an existing team must have `plan`, if given.

    Raises:
        GatewayError: invalid_request, when a name is invalid or the plan differs.
    """
    _check_names(team, plan)
    query = select(teams.c.id, teams.c.plan).where(teams.c.name == team)
    existing = (await connection.execute(query)).one_or_none()
    if existing is not None:
        if plan not in (None, existing.plan):
            raise _other("plan", f"team {team!r} has the plan {existing.plan}")
        return str(existing.id)
    team_id = new_id("team_")
    await connection.execute(
        insert(teams).values(
            id=team_id, name=team, plan=plan or DEFAULT, created_at_ms=clock.now_ms()
        )
    )
    return team_id


def _check_names(team: str | None, plan: str | None) -> None:
    if team is not None:
        check_name("team", team)
    if plan is not None:
        check_plan(plan)


def _other(field: str, fact: str) -> GatewayError:
    return invalid(field, f"{field}: {fact}; `users set` changes it")
