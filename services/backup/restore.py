"""Restore a backup into an empty data folder.

The database is put in place last: after an interrupted restore the folder has no database, so no
gateway serves an incomplete backup.
"""

import os
import shutil
from pathlib import Path

from services.backup.backup import check_is_local
from services.backup.copying import check_database, copy, sync_folder
from services.backup.manifest import BLOBS, DATABASE, NAME, BackupError, Manifest
from services.common.settings import Storage
from services.common.storage.migrations import HEAD
from services.supervisor.process import StartError
from services.supervisor.resources import LOCK_FILE, locked


def restore(storage: Storage, source: Path) -> Manifest:
    """Copy a backup into the data folder, and verify every byte.

    Raises:
        BackupError: the data are not on this machine, the data folder is not empty, a gateway uses
            it, or the backup is incomplete, damaged, or of a newer version.
        OSError: something cannot be read or written.
    """
    check_is_local(storage)
    manifest = _read_manifest(source)
    folder = storage.data_dir
    try:
        with locked(str(folder)):
            if {one.name for one in folder.iterdir()} - {LOCK_FILE}:
                raise BackupError(
                    f"{folder.absolute()}: is not empty; move its contents, or set another folder "
                    "with GATEWAY_DATA_DIR"
                )
            try:
                _put(manifest, source, folder)
            except BaseException:
                _clear(folder)
                raise
    except StartError as error:
        raise BackupError(str(error)) from error
    return manifest


def _read_manifest(source: Path) -> Manifest:
    try:
        text = (source / NAME).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BackupError(f"{source}: not a complete backup: {NAME} is missing") from error
    manifest = Manifest.decode(text)
    if manifest.migration > HEAD:
        raise BackupError(
            f"{source}: at migration step {manifest.migration}, which this version of the gateway "
            f"does not have (latest known step: {HEAD}): restore it with a version that has this "
            "step"
        )
    return manifest


def _put(manifest: Manifest, source: Path, folder: Path) -> None:
    (folder / BLOBS).mkdir(mode=0o700)
    unfinished = folder / f"{DATABASE}.new"
    for path, entry in manifest.files.items():
        target = unfinished if path == DATABASE else folder / path
        try:
            copied = copy(source / path, target)
        except FileNotFoundError as error:
            raise BackupError(f"{source / path}: missing, although {NAME} lists it") from error
        if copied != entry:
            raise BackupError(f"{source / path}: digest does not match the backup")
    check_database(unfinished)
    sync_folder(folder / BLOBS)
    os.replace(unfinished, folder / DATABASE)
    sync_folder(folder)


def _clear(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK_FILE:
            path.unlink()
