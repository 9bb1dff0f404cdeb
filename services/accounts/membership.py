"""Users and their teams within a transaction: find them, and create what is new.

A user belongs to one team or none. A plan belongs to the team where there is one, else to the
user.
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
    """A user in the database; `plan` is the one that counts."""

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
    """Return the id of a user, created if new.

    Args:
        connection: in a transaction that runs alone.
        clock: the clock.
        new_id: makes the ids of users and teams.
        user: name of the user.
        team: name of the user's team; None for none, or for the one a known user is in.
        plan: name of the plan of a new team or, without one, a new user; None for
            `personal_free`, or for the one that is set.

    Raises:
        GatewayError: invalid_request, when a name breaks the rules, or a known user or
            team has another team or plan.
    """
    check_name("user", user)
    known = await find_user(connection, user)
    if known is None:
        return await add_user(connection, clock, new_id, user, team, plan)
    _check_names(team, plan)
    if team is not None and team != known.team:
        where = f"in team {known.team!r}" if known.team else "in no team"
        raise _other("team", f"user {user!r} is {where}")
    if plan is not None and plan != known.plan:
        raise _other("plan", f"user {user!r} has the plan {known.plan}")
    return known.id


async def add_user(
    connection: AsyncConnection,
    clock: Clock,
    new_id: IdGenerator,
    user: str,
    team: str | None,
    plan: str | None,
) -> str:
    """Create a user whose name is free, as `ensure_user` does; return the id."""
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
    """Return the id of a team, created if new; a known one must have `plan`, if given.

    Raises:
        GatewayError: invalid_request, when a name breaks the rules or the plan is another one.
    """
    _check_names(team, plan)
    query = select(teams.c.id, teams.c.plan).where(teams.c.name == team)
    known = (await connection.execute(query)).one_or_none()
    if known is not None:
        if plan not in (None, known.plan):
            raise _other("plan", f"team {team!r} has the plan {known.plan}")
        return str(known.id)
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
