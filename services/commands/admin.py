"""`gateway admin-key` and `gateway audit`: manage admin keys, and print the audit log."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from services.commands.shared import FLAGS, on_database, print_table, time_of

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from gateway.accounts.v1.admin_pb2 import AuditEntry
    from services.accounts.admin.admin_keys import AdminKeyRepository
    from services.common.settings import Settings

Result = TypeVar("Result")


class Scope(StrEnum):
    """The scopes of admin keys; a test checks that they match the service."""

    READ = "read"
    USERS = "users"
    MONEY = "money"
    ALL = "all"


app = typer.Typer(help="Create, list and revoke keys for /admin/v1.", **FLAGS)
audit = typer.Typer(help="List changes to keys, users, teams and limits.", **FLAGS)


@app.command("create")
def create_admin_key(
    name: Annotated[
        str, typer.Option("--name", metavar="TEXT", help="Label of the key, such as its holder.")
    ] = "",
    scope: Annotated[
        list[Scope],
        typer.Option("--scope", help="What the key permits; can be repeated."),
    ] = [Scope.ALL],  # noqa: B006  # typer copies it
) -> None:
    """Create an admin key and print it, once: only its SHA-256 is stored."""
    typer.echo(_on_admin_keys(lambda keys: keys.create(name, scopes=scope)))
    typer.echo("Store it now: it cannot be shown again.", err=True)


@app.command("make")
def make_key() -> None:
    """Print a new admin key for `[admin]` in the settings, without storing it.

    Its SHA-256, for `admin.key_sha256`, is printed to standard error.
    """
    from secrets import token_bytes

    from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key

    key = make_admin_key(token_bytes(32))
    typer.echo(key)
    typer.echo(f'key_sha256 = "{hash_admin_key(key).hex()}"', err=True)


@app.command("list")
def list_admin_keys() -> None:
    """List the admin keys that were created, without the keys themselves."""
    rows: list[tuple[str, ...]] = [("ID", "PREFIX", "NAME", "SCOPES", "CREATED", "REVOKED")]
    rows += [
        (
            key.id,
            key.prefix,
            key.name or "-",
            key.scopes,
            time_of(key.created_at_ms // 1000),
            time_of(key.revoked_at_ms // 1000) if key.revoked_at_ms else "-",
        )
        for key in _on_admin_keys(lambda keys: keys.list_all())
    ]
    print_table(rows)


@app.command("revoke")
def revoke_admin_key(
    key: Annotated[str, typer.Argument(metavar="ID", help="Id of the admin key.")],
) -> None:
    """Revoke an admin key; it is rejected everywhere within 5 seconds."""
    info = _on_admin_keys(lambda keys: keys.revoke(key))
    typer.echo(f"Revoked {info.id} ({info.prefix}…).", err=True)


@audit.command("list")
def list_audit(
    subject: Annotated[
        str,
        typer.Option("--subject", metavar="ID", help="Only changes of this key, user or team."),
    ] = "",
    limit: Annotated[
        int,
        typer.Option("--limit", min=1, max=10_000, help="Maximum number of entries, newest first."),
    ] = 100,
) -> None:
    """List the newest changes."""

    async def work(engine: "AsyncEngine", settings: "Settings") -> "list[AuditEntry]":
        from services.accounts.admin.audit import AuditFilter, AuditLog

        criteria = AuditFilter(subject_id=subject)
        return [*(await AuditLog(engine).page(criteria, limit)).entries]

    rows: list[tuple[str, ...]] = [
        ("TIME", "ACTOR", "NAME", "ADDRESS", "ACTION", "SUBJECT", "BEFORE", "AFTER")
    ]
    rows += [
        (
            time_of(entry.at_ms // 1000),
            entry.actor,
            entry.actor_name or "-",
            entry.address or "-",
            entry.action,
            entry.subject_id,
            entry.before or "-",
            entry.after or "-",
        )
        for entry in on_database(work)
    ]
    print_table(rows)


def _on_admin_keys(work: "Callable[[AdminKeyRepository], Awaitable[Result]]") -> "Result":
    async def run(engine: "AsyncEngine", settings: "Settings") -> "Result":
        from services.accounts.admin.admin_keys import AdminKeyRepository

        return await work(AdminKeyRepository(engine))

    return on_database(run)
