"""Finds running gateways by the locks of their data folders, for commands.

The supervisor does not import this module, which takes memory as long as a gateway runs.
"""

import fcntl
import glob
import os
from contextlib import suppress
from typing import NamedTuple

from services.supervisor.resources import LOCK_FILE

_MAX_LOCK = 1024  # maximum characters read of a lock file


class RunningGateway(NamedTuple):
    """A gateway that holds the lock of its data folder.

    Attributes:
        data_dir: the data folder.
        process: id of the process, or "unknown".
        url: its address, or "" until it is ready.
    """

    data_dir: str
    process: str
    url: str = ""


def running_gateway(data_dir: str) -> RunningGateway | None:
    """Return the gateway that holds the lock of a data folder, or None.

    The process is "unknown" if the lock file does not contain its id.
    """
    try:
        file = open(os.path.join(data_dir, LOCK_FILE))
    except OSError:
        return None  # no gateway of this user has run there
    with file:
        try:
            # A shared lock, so that concurrent checks do not detect each other.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            process, _, url = file.read(_MAX_LOCK).strip().partition("\n")
            return RunningGateway(data_dir, process or "unknown", url)
    return None


def running_gateways() -> list[RunningGateway]:
    """Return the gateways of this user, found by the locks that their processes hold.

    Only systems with `/proc` show the files of other processes; elsewhere the list is empty.
    """
    folders = set()
    for process in glob.glob("/proc/[0-9]*/fd"):
        with suppress(OSError), os.scandir(process) as descriptors:
            for descriptor in descriptors:
                file = os.readlink(descriptor.path)
                if os.path.basename(file) == LOCK_FILE:
                    folders.add(os.path.dirname(file))
    return [running for folder in sorted(folders) if (running := running_gateway(folder))]
