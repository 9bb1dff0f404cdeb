"""`gateway model-groups`: manage named lists of models, which limits can allow."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from services.commands.shared import FLAGS, on_database, print_table

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from services.accounts.admin.model_groups import ModelGroupAdministration
    from services.common.settings import Settings

Result = TypeVar("Result")

_NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the group.")]

app = typer.Typer(help="Create, list and delete groups of models, which limits can allow.", **FLAGS)


@app.command("set")
def set_group(
    name: _NameArgument,
    model: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="A model, as named in requests; a `*` at the end matches any suffix. Repeatable.",
        ),
    ],
) -> None:
    """Create or replace a group; effective everywhere within 5 seconds."""
    _on_groups(lambda groups: groups.set(name, model))


@app.command("list")
def list_groups() -> None:
    """List all groups and their models."""
    rows = [
        (name, ", ".join(models) or "none")
        for name, models in _on_groups(lambda groups: groups.list_all())
    ]
    print_table([("NAME", "MODELS"), *rows])


@app.command("delete")
def delete_group(name: _NameArgument) -> None:
    """Delete a group that no limits name."""
    _on_groups(lambda groups: groups.delete(name))


def _on_groups(work: "Callable[[ModelGroupAdministration], Awaitable[Result]]") -> "Result":
    """Run a function with the groups of the database."""

    async def run(engine: "AsyncEngine", settings: "Settings") -> "Result":
        from services.accounts.admin.model_groups import ModelGroupAdministration

        return await work(ModelGroupAdministration(engine))

    return on_database(run)
