"""Functions that the commands of `gateway` share: settings, the database, output, exit.

Commands import modules when they run, so that `--help` responds at once.
"""

import re
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol, TypeVar

import typer

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from services.common.settings import Settings

Result = TypeVar("Result")

# The names of the plans; a test checks that they match the proto.
PlanName = Literal["personal_free", "personal_pro", "team_pro", "enterprise"]

FAILED = 1
WRONG = 2

# Options of every group of commands.
FLAGS: dict[str, Any] = {
    "no_args_is_help": True,
    "add_completion": False,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
}


_DURATION = re.compile(r"(\d{1,9})([smhd])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_PAGE = 1000


class Listed(Protocol):
    """An item of a paginated list, with an id."""

    @property
    def id(self) -> str:
        """The id, by which lists are ordered."""
        ...


ListedT = TypeVar("ListedT", bound=Listed)


def read_settings() -> "Settings":
    """Return the settings of this process; exit with a message if they are invalid."""
    from services.common.settings import SettingsError, load

    try:
        return load()
    except SettingsError as error:
        fail(str(error), WRONG)


def on_database(work: "Callable[[AsyncEngine, Settings], Awaitable[Result]]") -> "Result":
    """Run a function with the configured database, after migrations.

    Exits with a message if that fails.
    """
    import asyncio
    import logging

    from services.common.errors import GatewayError
    from services.common.settings import SettingsError
    from services.common.storage.database_errors import DatabaseError

    # No logs: the message on standard error has the same information.
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
    from services.common.storage.database import open_engine
    from services.common.storage.migrations.runner import migrate

    _check_data_folder(settings)
    engine = open_engine(settings.storage)
    try:
        await migrate(engine)
        return await work(engine, settings)
    finally:
        await engine.dispose()


def _check_data_folder(settings: "Settings") -> None:
    """Refuse to create a database in a relative folder where no gateway has run.

    A key in a new database would not be valid for any running gateway.
    """
    from services.common.settings import SettingsError
    from services.common.storage.database import SQLITE_FILE, is_sqlite

    folder = settings.storage.data_dir
    if is_sqlite(settings.storage) and not folder.is_absolute():
        if not (folder / SQLITE_FILE).exists():
            raise SettingsError(
                f"{folder.absolute()}: no gateway has run here; run this command in the folder "
                "where `gateway up` runs, or set GATEWAY_DATA_DIR to its data folder"
            )


def print_table(rows: list[tuple[str, ...]]) -> None:
    """Print rows with aligned columns; the first row is the heading."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo(line.rstrip())


def print_fields(**fields: str) -> None:
    """Print names and values, one pair per line."""
    width = max(map(len, fields))
    for name, value in fields.items():
        typer.echo(f"{name.ljust(width)}  {value}")


async def all_pages(page: Callable[[int, str], Awaitable[Sequence[ListedT]]]) -> list[ListedT]:
    """Return all items of a list; `page` is called with a size and the last id so far, or ""."""
    items: list[ListedT] = []
    while len(part := await page(_PAGE, items[-1].id if items else "")) == _PAGE:
        items += part
    return [*items, *part]


def seconds_of(duration: str) -> int:
    """Parse a duration such as `90d`, `12h`, `30m` or `45s`; exit if it is invalid."""
    match = _DURATION.fullmatch(duration)
    if match is None:
        fail(f"{duration}: must be a number of s, m, h or d, for example 90d", WRONG)
    return int(match[1]) * _SECONDS[match[2]]


def expires_at_ms(duration: str | None) -> int | None:
    """Return the end of a duration from now, in Unix milliseconds; exit if it is invalid."""
    return None if duration is None else int(1000 * (time.time() + seconds_of(duration)))


def time_of(at_s: int) -> str:
    """Return a time in Unix seconds as ISO 8601."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def fail(message: str, status: int = FAILED) -> NoReturn:
    """End the process with a message on standard error."""
    typer.echo(f"gateway: {message}", err=True)
    raise typer.Exit(status)
