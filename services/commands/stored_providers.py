"""`gateway stored-providers`: manage the providers in the database, with encrypted keys."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from services.commands.shared import FLAGS, on_database, print_table, time_of

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from services.accounts.providers.repository import StoredProviderRepository
    from services.common.settings import Settings

Result = TypeVar("Result")

_NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the provider.")]

app = typer.Typer(help="Add, list and delete providers in the database.", **FLAGS)


@app.command("set")
def set_provider(
    name: _NameArgument,
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="openai, anthropic or gemini; not needed for those of `gateway providers`.",
        ),
    ] = "",
    base_url: Annotated[str, typer.Option(metavar="URL", help="Address of the API.")] = "",
    without_key: Annotated[
        bool, typer.Option("--without-key", help="The server needs no key.")
    ] = False,
) -> None:
    """Add a provider or change it, with the key from standard input; effective within 5 seconds."""
    from services.accounts.providers.repository import NewProvider

    key = "" if without_key else typer.get_text_stream("stdin").read().strip()
    _on_providers(lambda providers: providers.set(NewProvider(name, kind, base_url, key)))


@app.command("list")
def list_providers() -> None:
    """List all stored providers, without their keys."""
    from gateway.accounts.v1.stored_providers_pb2 import StoredProviderState

    rows: list[tuple[str, ...]] = [("NAME", "KIND", "ADDRESS", "STATE", "KEY SET")]
    for one in _on_providers(lambda providers: providers.list_all()):
        state = StoredProviderState.Name(one.state).removeprefix("STORED_PROVIDER_STATE_").lower()
        key_set = time_of(one.key_set_at_ms // 1000) if one.has_key else "-"
        rows.append((one.name, one.kind, one.base_url, state, key_set))
    print_table(rows)


@app.command("delete")
def delete_provider(name: _NameArgument) -> None:
    """Delete a stored provider and its key."""
    _on_providers(lambda providers: providers.delete(name))


def _on_providers(work: "Callable[[StoredProviderRepository], Awaitable[Result]]") -> "Result":
    """Run a function with the providers of the database."""

    async def run(engine: "AsyncEngine", settings: "Settings") -> "Result":
        from services.accounts.providers.repository import StoredProviderRepository
        from services.common.clock import Clock

        return await work(StoredProviderRepository(engine, Clock(), settings))

    return on_database(run)
