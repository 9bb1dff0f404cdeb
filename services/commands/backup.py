"""The commands `gateway backup` and `gateway restore`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from services.commands.shared import fail, read_settings

if TYPE_CHECKING:
    from services.backup.manifest import Manifest
    from services.common.settings import Storage

_Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the backup.")]


def backup(folder: _Folder) -> None:
    """Copy the data of the gateway, which may be running, into a new folder, and verify the copy.

    The copy contains the hashes of keys, the gateway's own secrets and the users' data: keep it as
    private as the data folder. For PostgreSQL and S3, the command prints what to use instead.
    """
    from datetime import UTC, datetime

    from services.backup.backup import back_up

    _report(
        "Backed up", lambda storage: back_up(storage, folder, datetime.now(UTC)), f"to {folder}"
    )


def restore(folder: _Folder) -> None:
    """Restore a backup into the data folder, which must be empty, and verify every byte."""
    from services.backup.restore import restore as put

    _report("Restored", lambda storage: put(storage, folder), f"from {folder}")


def _report(done: str, work: "Callable[[Storage], Manifest]", where: str) -> None:
    from services.backup.manifest import BLOBS, BackupError

    try:
        manifest = work(read_settings().storage)
    except BackupError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}; nothing was changed")
    size = sum(entry.size for entry in manifest.files.values())
    count = sum(path.startswith(f"{BLOBS}/") for path in manifest.files)
    typer.echo(
        f"{done} the database at step {manifest.migration} and {count} files, {size} bytes, "
        f"of {manifest.created_at}, {where}"
    )
