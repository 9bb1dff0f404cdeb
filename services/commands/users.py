"""`gateway users` and `gateway teams`: manage users, teams and their plans."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from services.commands.shared import (
    FLAGS,
    WRONG,
    PlanName,
    all_pages,
    fail,
    on_database,
    print_fields,
    print_table,
    time_of,
)

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from gateway.accounts.v1.admin_pb2 import Erasure, Team, User
    from services.accounts.admin.teams import TeamAdministration
    from services.accounts.admin.users import DeletedUser, UserAdministration
    from services.common.settings import Settings

Result = TypeVar("Result")

_UserArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the user.")]
_TeamArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the team.")]


class RoleOption(StrEnum):
    """The roles of users; a test checks that they match the service."""

    VIEWER = "viewer"
    USER = "user"
    TEAM_ADMIN = "team_admin"
    ADMIN = "admin"
    NONE = "none"


users = typer.Typer(
    help="Create, list and delete users; change their teams, plans and roles.", **FLAGS
)
teams = typer.Typer(help="Create, list and delete teams; change their plans.", **FLAGS)


@users.command("create")
def create_user(
    name: _UserArgument,
    team: Annotated[
        str | None,
        typer.Option(
            "--team", metavar="NAME", help="Team of the user; created if it does not exist."
        ),
    ] = None,
    plan: Annotated[
        PlanName | None,
        typer.Option(
            "--plan",
            help="Plan of a new team, or of a user without a team.  [default: personal_free]",
        ),
    ] = None,
) -> None:
    """Create a user without a key, and print the id."""
    typer.echo(_on_users(lambda users: users.create(name, team, plan)).id)


@users.command("list")
def list_users(
    team: Annotated[
        str, typer.Option("--team", metavar="NAME", help="Only users of this team.")
    ] = "",
) -> None:
    """List every user."""

    async def work(users: "UserAdministration") -> "list[User]":
        return await all_pages(lambda size, after: users.page(size, after, team=team))

    rows: list[tuple[str, ...]] = [("ID", "NAME", "TEAM", "PLAN", "ROLE", "CREATED")]
    rows += [
        (
            *(user.id, user.name, user.team or "-", _plan(user), _role(user)),
            time_of(user.created_at_ms // 1000),
        )
        for user in _on_users(work)
    ]
    print_table(rows)


@users.command("show")
def show_user(name: _UserArgument) -> None:
    """Show a user."""
    user = _on_users(lambda users: users.named(name))
    print_fields(
        ID=user.id,
        NAME=user.name,
        TEAM=user.team or "-",
        PLAN=_plan(user),
        ROLE=_role(user),
        CREATED=time_of(user.created_at_ms // 1000),
    )


@users.command("set")
def set_user(
    user: Annotated[
        str, typer.Option("--user", metavar="NAME", help="Name of the user, 1 to 64 characters.")
    ],
    team: Annotated[
        str | None,
        typer.Option(
            "--team",
            metavar="NAME",
            help="Move the user to this team, created if it does not exist; '' for none.",
        ),
    ] = None,
    plan: Annotated[
        PlanName | None,
        typer.Option(
            "--plan", help="Set the plan of the user's team, or of a user without a team."
        ),
    ] = None,
    role: Annotated[
        RoleOption | None,
        typer.Option("--role", help="Set what the user may do after a sign-in; none removes it."),
    ] = None,
) -> None:
    """Change a user's team, plan or role; it takes effect everywhere within 5 seconds."""
    new_role = {None: None, RoleOption.NONE: ""}.get(role, role)
    _on_users(lambda users: users.set(user, team, plan, role=new_role))


@users.command("delete")
def delete_user(name: _UserArgument) -> None:
    """Delete a user and the user's keys, which are rejected everywhere within seconds.

    Usage records remain. Files, memories and documents remain too, but nobody can read them;
    `users erase` removes them.
    """

    async def work(users: "UserAdministration") -> "DeletedUser":
        return await users.delete((await users.named(name)).id)

    deleted = _on_users(work)
    keys = f"{len(deleted.key_ids)} keys" if len(deleted.key_ids) != 1 else "1 key"
    typer.echo(f"Deleted {deleted.user.id} ({name}) with {keys}.", err=True)


@users.command("erase")
def erase_user(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="Name of the user.", show_default=False)
    ] = "",
    user_id: Annotated[
        str, typer.Option("--id", metavar="USER_ID", help="Id of a user who was deleted before.")
    ] = "",
) -> None:
    """Delete a user, remove all data that are stored of the user, and show what was removed.

    If the command is interrupted, a running gateway goes on, or the command with --id. A running
    gateway also removes what requests in progress store, for a day.
    """
    if bool(name) == bool(user_id):
        fail("give either the name of a user, or --id with the id of a deleted one", WRONG)

    async def work(engine: "AsyncEngine", settings: "Settings") -> "Erasure":
        from services.accounts.admin.users import UserAdministration
        from services.accounts.erasure.eraser import Eraser
        from services.accounts.erasure.repository import ErasureRepository
        from services.common.clock import Clock
        from services.erasures import erase_batches

        users, clock = UserAdministration(engine), Clock()
        erasure = await users.erase(user_id or (await users.named(name)).id)
        typer.echo(f"Erasing {erasure.user_id}.", err=True)
        erasures = ErasureRepository(engine, clock)
        await Eraser(erasures, erase_batches(settings, engine, clock)).run(erasure.user_id, _go_on)
        return await erasures.get(erasure.user_id)

    rows: list[tuple[str, ...]] = [("REMOVED", "ITEMS", "BYTES")]
    rows += [
        (one.kind, str(one.items), str(one.size_bytes) if one.size_bytes else "-")
        for one in on_database(work).erased
    ]
    print_table(rows)


async def _go_on() -> bool:
    return True


@teams.command("create")
def create_team(
    name: _TeamArgument,
    plan: Annotated[
        PlanName | None, typer.Option("--plan", help="Plan of the team.  [default: personal_free]")
    ] = None,
) -> None:
    """Create a team without members, and print the id."""
    typer.echo(_on_teams(lambda teams: teams.create(name, plan)).id)


@teams.command("list")
def list_teams() -> None:
    """List every team."""

    async def work(teams: "TeamAdministration") -> "list[Team]":
        return await all_pages(teams.page)

    rows: list[tuple[str, ...]] = [("ID", "NAME", "PLAN", "USERS", "CREATED")]
    rows += [
        (team.id, team.name, _plan(team), str(team.users), time_of(team.created_at_ms // 1000))
        for team in _on_teams(work)
    ]
    print_table(rows)


@teams.command("show")
def show_team(name: _TeamArgument) -> None:
    """Show a team."""
    team = _on_teams(lambda teams: teams.named(name))
    print_fields(
        ID=team.id,
        NAME=team.name,
        PLAN=_plan(team),
        USERS=str(team.users),
        CREATED=time_of(team.created_at_ms // 1000),
    )


@teams.command("set")
def set_team(
    name: _TeamArgument, plan: Annotated[PlanName, typer.Option("--plan", help="New plan.")]
) -> None:
    """Change a team's plan; it takes effect everywhere within 5 seconds."""

    async def work(teams: "TeamAdministration") -> None:
        await teams.update((await teams.named(name)).id, plan)

    _on_teams(work)


@teams.command("delete")
def delete_team(name: _TeamArgument) -> None:
    """Delete a team that has no users."""

    async def work(teams: "TeamAdministration") -> "Team":
        return await teams.delete((await teams.named(name)).id)

    typer.echo(f"Deleted {_on_teams(work).id} ({name}).", err=True)


def _on_users(work: "Callable[[UserAdministration], Awaitable[Result]]") -> "Result":
    async def run(engine: "AsyncEngine", settings: "Settings") -> "Result":
        from services.accounts.admin.users import UserAdministration

        return await work(UserAdministration(engine))

    return on_database(run)


def _on_teams(work: "Callable[[TeamAdministration], Awaitable[Result]]") -> "Result":
    async def run(engine: "AsyncEngine", settings: "Settings") -> "Result":
        from services.accounts.admin.teams import TeamAdministration

        return await work(TeamAdministration(engine))

    return on_database(run)


def _role(user: "User") -> str:
    from services.accounts.admin.records import role_name

    return role_name(user.role) or "-"


def _plan(owner: "User | Team") -> str:
    from services.common.plans import plan_name

    return plan_name(owner.plan)
