"""`gateway groups`, `grants` and `articles`: groups, grants and sharing of documents."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from services.commands.shared import FLAGS, on_database, print_table, time_of

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from services.accounts.repository import AccountRepository
    from services.articles.groups import GroupInfo, GroupRepository
    from services.common.settings import Settings

Result = TypeVar("Result")

# The names of the permissions and grants; a test checks that they match the service.
Permission = Literal["private", "group-only"]
Grant = Literal["articles"]

_UserOption = Annotated[str, typer.Option("--user", metavar="NAME", help="Name of the user.")]
_GroupArgument = Annotated[
    int,
    typer.Argument(metavar="GROUP", min=1, max=(1 << 53) - 1, help="Id of the group."),
]
_DocumentArgument = Annotated[str, typer.Argument(metavar="ID", help="Id of the document.")]

groups = typer.Typer(help="Manage groups whose members share documents.", **FLAGS)
grants = typer.Typer(help="Grant users access to features that the settings restrict.", **FLAGS)
articles = typer.Typer(help="Change who may read a document; restore deleted documents.", **FLAGS)


@groups.command("create")
def create_group(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the group.")],
    user: Annotated[
        str, typer.Option("--user", metavar="NAME", help="Creator and first member of the group.")
    ],
) -> None:
    """Create a group and print its id."""

    async def work(repository: "GroupRepository", accounts: "AccountRepository") -> int:
        return await repository.create(name, (await accounts.caller_named(user)).user_id)

    typer.echo(str(_on_groups(work)))


@groups.command("add")
def add_member(group: _GroupArgument, user: _UserOption) -> None:
    """Add a user to a group."""

    async def work(repository: "GroupRepository", accounts: "AccountRepository") -> None:
        await repository.add(group, (await accounts.caller_named(user)).user_id)

    _on_groups(work)


@groups.command("remove")
def remove_member(group: _GroupArgument, user: _UserOption) -> None:
    """Remove a user from a group; documents that the user created there remain."""

    async def work(repository: "GroupRepository", accounts: "AccountRepository") -> None:
        await repository.remove(group, (await accounts.caller_named(user)).user_id)

    _on_groups(work)


@groups.command("list")
def list_groups() -> None:
    """List every group, oldest first."""

    async def work(
        repository: "GroupRepository", accounts: "AccountRepository"
    ) -> list[tuple[str, ...]]:
        return [_row(info) for info in await repository.list_all()]

    print_table([("ID", "NAME", "CREATOR", "MEMBERS", "DOCUMENTS", "CREATED"), *_on_groups(work)])


@grants.command("add")
def add_grant(
    user: _UserOption,
    grant: Annotated[Grant, typer.Argument(help="Feature to grant.")] = "articles",
) -> None:
    """Allow a user to edit documents if `articles.require_grant` is set."""

    async def work(repository: "GroupRepository", accounts: "AccountRepository") -> None:
        await repository.give_grant((await accounts.caller_named(user)).user_id, grant)

    _on_groups(work)


@grants.command("remove")
def remove_grant(
    user: _UserOption,
    grant: Annotated[Grant, typer.Argument(help="Feature to revoke.")] = "articles",
) -> None:
    """Revoke a grant, with immediate effect."""

    async def work(repository: "GroupRepository", accounts: "AccountRepository") -> None:
        await repository.take_grant((await accounts.caller_named(user)).user_id, grant)

    _on_groups(work)


@articles.command("share")
def share(
    document: _DocumentArgument,
    permission: Annotated[Permission, typer.Argument(help="Who may read and edit the document.")],
) -> None:
    """Share a document with its group, or restrict it to its author."""

    async def work(engine: "AsyncEngine", settings: "Settings") -> None:
        from services.articles.repository import ArticleRepository

        await ArticleRepository(engine).share(document, permission)

    on_database(work)


@articles.command("restore")
def restore(document: _DocumentArgument) -> None:
    """Restore a deleted document."""

    async def work(engine: "AsyncEngine", settings: "Settings") -> None:
        from services.articles.repository import ArticleRepository

        await ArticleRepository(engine).restore(document)

    on_database(work)


def _on_groups(
    work: "Callable[[GroupRepository, AccountRepository], Awaitable[Result]]",
) -> "Result":
    async def run(engine: "AsyncEngine", settings: "Settings") -> "Result":
        from services.accounts.repository import AccountRepository
        from services.articles.groups import GroupRepository

        return await work(GroupRepository(engine), AccountRepository(engine))

    return on_database(run)


def _row(info: "GroupInfo") -> tuple[str, ...]:
    return (
        str(info.id),
        info.name,
        info.creator_id,
        str(info.members),
        str(info.articles),
        time_of(info.created_at_ms // 1000),
    )
