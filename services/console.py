"""Functions that the commands of `gateway` share: settings, the database, output, exit.

Whatever a command needs is loaded when it runs, so that `--help` answers at once.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import typer

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from services.common.settings import Settings

Result = TypeVar("Result")

FAILED = 1
WRONG = 2

# Options of every group of commands.
FLAGS: dict[str, Any] = {
    "no_args_is_help": True,
    "add_completion": False,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
}


def read_settings() -> "Settings":
    """Return the settings of this process; exit with a message if they are wrong."""
    from services.common.settings import SettingsError, load

    try:
        return load()
    except SettingsError as error:
        fail(str(error), WRONG)


def on_database(work: "Callable[[AsyncEngine, Settings], Awaitable[Result]]") -> "Result":
    """Run a function on the database that the settings name, after migrations.

    Exits with a message if that fails.
    """
    import asyncio
    import logging

    from services.common.database_errors import DatabaseError
    from services.common.errors import GatewayError
    from services.common.settings import SettingsError

    # What a log line would say, the message on standard error says.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        return asyncio.run(_with_database(read_settings(), work))
    except SettingsError as error:
        fail(str(error), WRONG)
    except DatabaseError as error:
        fail(error.advice)
    except GatewayError as error:
        cause = getattr(error.__cause__, "orig", error.__cause__)
        fail(f"{error.message} ({cause})" if cause else error.message)


async def _with_database(
    settings: "Settings", work: "Callable[[AsyncEngine, Settings], Awaitable[Result]]"
) -> "Result":
    from services.common.database import migrate, open_engine

    _check_data_folder(settings)
    engine = open_engine(settings.storage)
    try:
        await migrate(engine)
        return await work(engine, settings)
    finally:
        await engine.dispose()


def _check_data_folder(settings: "Settings") -> None:
    """Refuse to create a database in a folder where no gateway has run.

    A key of a new database would be good for no gateway that runs.
    """
    from services.common.database import SQLITE_FILE, is_sqlite
    from services.common.settings import SettingsError

    folder = settings.storage.data_dir
    if is_sqlite(settings.storage) and not folder.is_absolute():
        if not (folder / SQLITE_FILE).exists():
            raise SettingsError(
                f"{folder.absolute()}: no gateway has run here; run this command in the folder "
                "where `gateway up` runs, or name its data folder with GATEWAY_DATA_DIR"
            )


def print_table(rows: list[tuple[str, ...]]) -> None:
    """Print rows with their columns below each other; the first row is the heading."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo(line.rstrip())


def time_of(at_s: int) -> str:
    """Return a time in Unix seconds as ISO 8601."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def fail(message: str, status: int = FAILED) -> NoReturn:
    """End the process with a message on standard error."""
    typer.echo(f"gateway: {message}", err=True)
    raise typer.Exit(status)
