"""Files and folders that only the gateway's own user may read."""

import logging
import os
import stat
from pathlib import Path

_FOLDER = 0o700
_FILE = 0o600
# New files of a process are not accessible to other users.
_UMASK = 0o077

log = logging.getLogger(__name__)


def make_files_private() -> None:
    """Set the umask so that only this user can access new files of the process."""
    os.umask(_UMASK)


def make_private(path: Path) -> None:
    """Remove the access of other users to a file or folder, if it exists.

    Files of other users, and folders with the sticky bit such as /tmp, are left unchanged, with a
    warning in the log.
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    allowed = _FOLDER if stat.S_ISDIR(status.st_mode) else _FILE
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode) or not mode & ~allowed:
        return
    details = {"path": str(path), "mode": f"{mode:04o}"}
    if mode & stat.S_ISVTX:
        log.warning("the data are in a folder that is shared with other users", extra=details)
        return
    try:
        os.chmod(path, mode & allowed)
    except OSError as error:
        log.warning(
            "other users can access the data", extra=details | {"error": str(error.strerror)}
        )
    else:
        log.warning("other users could access the data; their access was removed", extra=details)
