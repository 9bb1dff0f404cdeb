"""`gateway keys`: create, list, change, rotate and revoke API keys."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from services.commands.shared import (
    FLAGS,
    PlanName,
    all_pages,
    expires_at_ms,
    on_database,
    print_fields,
    print_table,
    seconds_of,
    time_of,
)

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from gateway.accounts.v1.admin_pb2 import ApiKey
    from services.accounts.admin.keys import KeyAdministration
    from services.common.settings import Settings

Result = TypeVar("Result")

_KeyArgument = Annotated[
    str, typer.Argument(metavar="KEY", help="Id of a key, its prefix, or the key itself.")
]
_NameOption = Annotated[
    str | None,
    typer.Option("--name", metavar="TEXT", help="Label of the key, such as its purpose."),
]

app = typer.Typer(help="Create, list, change, rotate and revoke API keys.", **FLAGS)


@app.command("create")
def create_key(
    user: Annotated[
        str, typer.Option("--user", metavar="NAME", help="Name of the user, 1 to 64 characters.")
    ],
    team: Annotated[
        str | None,
        typer.Option(
            "--team", metavar="NAME", help="Team of a new user; created if it does not exist."
        ),
    ] = None,
    plan: Annotated[
        PlanName | None,
        typer.Option("--plan", help="Plan of a new team or user.  [default: personal_free]"),
    ] = None,
    name: _NameOption = None,
    expires_in: Annotated[
        str | None,
        typer.Option(
            "--expires-in",
            metavar="TIME",
            help="How long the key is valid, for example 90d or 12h.",
        ),
    ] = None,
) -> None:
    """Create an API key and print it; it cannot be shown again.

    An existing user keeps team and plan; `gateway users set` changes them.
    """

    async def work(keys: "KeyAdministration") -> str:
        from services.accounts.admin.key_rows import NewKey

        new = NewKey(user, team, plan, name or "", expires_at_ms(expires_in))
        return (await keys.create(new)).key

    typer.echo(_on_keys(work))
    typer.echo("Store it now: it cannot be shown again.", err=True)


@app.command("list")
def list_keys(
    user: Annotated[
        str, typer.Option("--user", metavar="NAME", help="Only keys of this user.")
    ] = "",
    team: Annotated[
        str, typer.Option("--team", metavar="NAME", help="Only keys of this team's users.")
    ] = "",
    long: Annotated[bool, typer.Option("--long", help="Also show state, expiry and name.")] = False,
) -> None:
    """List every key, without the keys themselves."""

    async def work(keys: "KeyAdministration") -> "list[ApiKey]":
        return await all_pages(lambda size, after: keys.page(size, after, user=user, team=team))

    heading = ("ID", "PREFIX", "USER", "TEAM", "PLAN", "CREATED", "REVOKED")
    rows: list[tuple[str, ...]] = [heading + (("STATE", "EXPIRES", "NAME") if long else ())]
    rows += [_row(key) + (_more(key) if long else ()) for key in _on_keys(work)]
    print_table(rows)


@app.command("show")
def show_key(key: _KeyArgument) -> None:
    """Print a key's record."""
    _print(_on_keys(lambda keys: keys.find(key)))


@app.command("set")
def set_key(
    key: _KeyArgument,
    name: _NameOption = None,
    enabled: Annotated[
        bool | None,
        typer.Option("--enable/--disable", help="Enable or disable the key.", show_default=False),
    ] = None,
    expires_in: Annotated[
        str | None,
        typer.Option(
            "--expires-in",
            metavar="TIME",
            help="Time until the key expires, for example 90d; or never.",
        ),
    ] = None,
) -> None:
    """Change a key; it takes effect everywhere within 5 seconds."""

    async def work(keys: "KeyAdministration") -> "ApiKey":
        from services.accounts.admin.keys import KeyChanges

        expiry = 0 if expires_in == "never" else expires_at_ms(expires_in)
        disabled = None if enabled is None else not enabled
        changes = KeyChanges(name, disabled, expiry)
        return await keys.update((await keys.find(key)).id, changes)

    _print(_on_keys(work))


@app.command("rotate")
def rotate_key(
    key: _KeyArgument,
    grace: Annotated[
        str,
        typer.Option(
            "--grace", metavar="TIME", help="How long the old key stays valid, at most 30d."
        ),
    ] = "1d",
) -> None:
    """Create a key that replaces another one, and print it; it cannot be shown again.

    The new key has the user, name, expiry and limits of the old key.
    """

    async def work(keys: "KeyAdministration") -> "tuple[str, ApiKey]":
        rotated = await keys.rotate((await keys.find(key)).id, seconds_of(grace))
        return rotated.key, rotated.replaced

    made, old = _on_keys(work)
    typer.echo(made)
    typer.echo(
        f"Store it now: it cannot be shown again. {old.id} ({old.prefix}…) is valid until "
        f"{_time(old.expires_at_ms)}.",
        err=True,
    )


@app.command("revoke")
def revoke_key(key: _KeyArgument) -> None:
    """Revoke a key; it is rejected everywhere within 5 seconds."""

    async def work(keys: "KeyAdministration") -> "ApiKey":
        return await keys.revoke((await keys.find(key)).id)

    info = _on_keys(work)
    typer.echo(f"Revoked {info.id} ({info.prefix}…) of user {info.user}.", err=True)


def _on_keys(work: "Callable[[KeyAdministration], Awaitable[Result]]") -> "Result":
    """Run a function with the keys of the configured database."""

    async def run(engine: "AsyncEngine", settings: "Settings") -> "Result":
        from services.accounts.admin.keys import KeyAdministration

        return await work(KeyAdministration(engine))

    return on_database(run)


def _print(key: "ApiKey") -> None:
    print_fields(
        ID=key.id,
        PREFIX=key.prefix,
        NAME=key.name or "-",
        USER=key.user,
        TEAM=key.team or "-",
        PLAN=_plan(key),
        STATE=_state(key),
        CREATED=_time(key.created_at_ms),
        EXPIRES=_time(key.expires_at_ms),
        REVOKED=_time(key.revoked_at_ms),
        REPLACES=key.replaces or "-",
    )


def _row(key: "ApiKey") -> tuple[str, ...]:
    return (
        key.id,
        key.prefix,
        key.user,
        key.team or "-",
        _plan(key),
        _time(key.created_at_ms),
        _time(key.revoked_at_ms),
    )


def _more(key: "ApiKey") -> tuple[str, ...]:
    return _state(key), _time(key.expires_at_ms), key.name or "-"


def _plan(key: "ApiKey") -> str:
    from services.common.plans import plan_name

    return plan_name(key.plan)


def _state(key: "ApiKey") -> str:
    from gateway.accounts.v1.admin_pb2 import KeyState

    return KeyState.Name(key.state).removeprefix("KEY_STATE_").lower()


def _time(at_ms: int) -> str:
    return time_of(at_ms // 1000) if at_ms else "-"
