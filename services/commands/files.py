"""`gateway files`: manage the files of a user, or of the user's team."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from services.commands.shared import FLAGS, on_database, print_table, time_of

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from gateway.files.v1.files_pb2 import File
    from services.common.grpc.authentication import Caller
    from services.common.settings import Settings

Result = TypeVar("Result")

# Files that are read in one transaction.
_PAGE = 1000

_UserOption = Annotated[
    str,
    typer.Option(
        "--user", metavar="NAME", help="Name of the user; files are shared within a team."
    ),
]

app = typer.Typer(help="List, delete and count a user's files.", **FLAGS)


@app.command("list")
def list_files(user: _UserOption) -> None:
    """List the files, newest first."""

    async def work(engine: "AsyncEngine", settings: "Settings", caller: "Caller") -> None:
        from gateway.files.v1.files_pb2 import ListFilesRequest
        from services.files.repository import FileRepository
        from services.files.store import owner_of

        repository = FileRepository(engine)
        rows: list[tuple[str, ...]] = [
            ("ID", "BYTES", "CREATED", "EXPIRES", "PURPOSE", "TYPE", "NAME")
        ]
        after_id, more = "", True
        while more:
            request = ListFilesRequest(limit=_PAGE, after_id=after_id)
            page, more = await repository.page(owner_of(caller), request)
            rows += map(_row, page)
            after_id = page[-1].id if page else ""
        print_table(rows)

    _for_user(user, work)


@app.command("rm")
def remove_files(
    user: _UserOption,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of the files.")],
) -> None:
    """Delete files, also those that documents show; stop at the first that is not the user's."""

    async def work(engine: "AsyncEngine", settings: "Settings", caller: "Caller") -> None:
        from services.common.clock import Clock
        from services.files.blobs import open_blobs
        from services.files.repository import FileRepository
        from services.files.store import FileStore, owner_of
        from services.memory.assembly import open_queue
        from services.memory.vector_stores.removed_files import RemovedFiles

        clock = Clock()
        repository = FileRepository(engine, clock, RemovedFiles(open_queue(engine, clock)))
        store = FileStore(repository, open_blobs(settings.storage))
        for file_id in ids:
            await store.delete(owner_of(caller), file_id, force=True)
            typer.echo(f"Deleted {file_id}.", err=True)

    _for_user(user, work)


@app.command("usage")
def show_usage(user: _UserOption) -> None:
    """Print the number and the size of the files, and the quota."""

    async def work(engine: "AsyncEngine", settings: "Settings", caller: "Caller") -> None:
        from services.files.repository import FileRepository
        from services.files.store import owner_of, quota_of

        used = await FileRepository(engine).usage(owner_of(caller))
        quota = quota_of(caller, settings.limits.storage)
        print_table(
            [
                ("OWNER", "FILES", "BYTES", "QUOTA"),
                (owner_of(caller), str(used.files), str(used.size_bytes), str(quota)),
            ]
        )

    _for_user(user, work)


def _row(file: "File") -> tuple[str, ...]:
    from gateway.files.v1.files_pb2 import Purpose

    return (
        file.id,
        str(file.size_bytes),
        time_of(file.created_at),
        time_of(file.expires_at),
        Purpose.Name(file.purpose).removeprefix("PURPOSE_").lower(),
        file.mime_type,
        # Bidirectional marks, which reverse the rest of the line, must not reach the terminal.
        "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in file.filename),
    )


def _for_user(
    user: str, work: "Callable[[AsyncEngine, Settings, Caller], Awaitable[Result]]"
) -> "Result":
    async def run(engine: "AsyncEngine", settings: "Settings") -> "Result":
        from services.accounts.repository import AccountRepository

        return await work(engine, settings, await AccountRepository(engine).caller_named(user))

    return on_database(run)
