"""PgBouncer in front of a PostgreSQL server, where this machine has one.

Debian's package `pgbouncer` is an older one in Debian 12; `.ci/pgbouncer` puts a newer one beside
it.
"""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.databases import PostgreSQL
from tests.e2e.processes import Running, free_port

_PLACES = (shutil.which("pgbouncer") or "/usr/sbin/pgbouncer", "/opt/pgbouncer/pgbouncer")
# From this version on it keeps prepared statements in transaction mode.
_KEEPS_STATEMENTS = (1, 21)
# Fewer than a gateway opens: transactions of one connection go to several of the server's.
_SERVER_CONNECTIONS = 4


@cache
def _programs() -> dict[bool, str]:
    """Return an installed program by whether it keeps prepared statements."""
    programs = {}
    for path in filter(os.path.exists, _PLACES):
        shown = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        if version := re.match(r"PgBouncer (\d+)\.(\d+)", shown):
            programs[(int(version[1]), int(version[2])) >= _KEEPS_STATEMENTS] = path
    return programs


newer = pytest.mark.skipif(True not in _programs(), reason="no PgBouncer that keeps statements")
older = pytest.mark.skipif(False not in _programs(), reason="no older PgBouncer")


def kinds_installed() -> list[bool]:
    """Return whether each installed program keeps prepared statements."""
    return sorted(_programs(), reverse=True)


@dataclass
class Pooler:
    """A PgBouncer.

    Attributes:
        url: of the server's first database, through it.
        keeps_statements: whether it keeps prepared statements in transaction mode.
    """

    url: str
    keeps_statements: bool
    _command: list[str]
    _folder: Path
    _process: Running = field(init=False)

    @property
    def gateway_url(self) -> str:
        """The URL with what a gateway needs for an older one."""
        return self.url + ("" if self.keeps_statements else "?statement_cache_size=0")

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self._process = Running(self._command, folder=self._folder)
        self._process.wait_for("process up")

    def kill(self) -> None:
        """Kill it as `kill -9` does."""
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.stop()


@contextmanager
def pooler(
    server: PostgreSQL, *, keeps_statements: bool, mode: str = "transaction", settings: str = ""
) -> Iterator[Pooler]:
    """Run a PgBouncer in front of a server.

    Args:
        server: the server.
        keeps_statements: whether it is one of 1.21 or later, or an older one.
        mode: its `pool_mode`.
        settings: further lines of its settings.
    """
    url = urlsplit(server.url)
    [socket] = parse_qs(url.query)["host"]
    port = free_port()
    with TemporaryDirectory(prefix="gateway-pooler-") as name:
        folder = Path(name)
        # It does not run as root, and must reach the server's socket.
        folder.chmod(0o755)
        user = f"user = {Path(socket).owner()}" if os.geteuid() == 0 else ""
        (folder / "pgbouncer.ini").write_text(
            f"[databases]\n* = host={socket} user={url.username}\n[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
            f"pool_mode = {mode}\ndefault_pool_size = {_SERVER_CONNECTIONS}\n{user}\n{settings}\n"
        )
        program = _programs()[keeps_statements]
        running = Pooler(
            f"postgresql://{url.username}@127.0.0.1:{port}{url.path}",
            keeps_statements,
            [program, str(folder / "pgbouncer.ini")],
            folder,
        )
        running.start()
        try:
            yield running
        finally:
            running.kill()
