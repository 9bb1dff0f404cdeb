"""Real processes that serve, and that tests kill."""

import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.forked import AsyncForkedProcess, fork

_SETTINGS = """\
[discovery]
enabled = false
"""


@asynccontextmanager
async def serving(
    folder: Path, services: Sequence[str], name: str = "s", settings: str = ""
) -> AsyncIterator[tuple[AsyncForkedProcess, str]]:
    """Run services on the data of a folder; yield the process and its address.

    Args:
        folder: has a short path, since the socket is there.
        services: which ones.
        name: of the process, in the folder.
        settings: TOML that is added to what it is told.
    """
    path = folder / f"{name}.toml"
    path.write_text(_SETTINGS + settings)
    address = f"unix:{folder}/{name}"
    log = folder / f"{name}.log"
    with log.open("wb") as log_file:
        process = await fork(
            *(sys.executable, "-m", "services", *services, "--listen", address),
            environ={**os.environ, "GATEWAY_CONFIG": str(path), "GATEWAY_DATA_DIR": str(folder)},
            stderr=log_file.fileno(),
        )
    try:
        assert await process.stdout.readline() == b"READY\n", log.read_text()
        yield process, address
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.wait()
