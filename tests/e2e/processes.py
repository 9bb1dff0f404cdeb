"""Processes that tests start, wait for by what they say, and stop."""

import os
import re
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.forked import ForkedProcess

ROOT = Path(__file__).parents[2]
PYTHON = sys.executable
# Below those that the system gives to whoever asks for any port (ip_local_port_range): one of them
# could be given to another test before the process that it is for listens there.
_FREE_PORTS = range(20_000, 32_768)


class Running:
    """A process whose output is read as it comes.

    Use as a context: at its end the process is told to stop, and killed when it
    takes longer than `stop_within_s`. A command of the gateway may be forked by the fork server;
    one on certain processors, as where it is measured, is executed.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environ: Mapping[str, str] | None = None,
        folder: Path = ROOT,
        cpus: Sequence[int] = (),
        stop_within_s: float = 40,
        is_forked: bool = False,
    ) -> None:
        self._stop_within_s = stop_within_s
        prefix = ["taskset", "-c", ",".join(map(str, cpus))] if cpus else []
        self._command = [*prefix, *command]
        all_environ = {**os.environ, "PYTHONUNBUFFERED": "1", **(environ or {})}
        read_end, write_end = os.pipe()
        self._stdout = open(read_end, errors="replace")
        start = self._fork if is_forked and not cpus else self._execute
        try:
            self._process = start(folder, all_environ, write_end)
        finally:
            os.close(write_end)
        self._lines: list[str] = []
        self._ended = False
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        """The output so far, errors included."""
        with self._news:
            return "".join(self._lines)

    def wait_for(self, pattern: str, within_s: float = 60) -> re.Match[str]:
        """Wait until a line that it writes holds `pattern`.

        Raises:
            AssertionError: it ended, or time was up, before; the text shows its output.
        """
        compiled = re.compile(pattern)
        seen = 0
        match: re.Match[str] | None = None

        def look() -> bool:
            nonlocal seen, match
            while match is None and seen < len(self._lines):
                match = compiled.search(self._lines[seen])
                seen += 1
            return match is not None or self._ended

        with self._news:
            self._news.wait_for(look, within_s)
            if match is None:
                name = " ".join(map(str, self._command))
                raise AssertionError(f"{name}: no {pattern!r} in:\n{''.join(self._lines)}")
            return match

    def stop(self) -> int:
        """Tell it to stop; give its exit status once it has."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            return self._process.wait(self._stop_within_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
        finally:
            self._reader.join(5)
            self._stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _execute(
        self, folder: Path, environ: Mapping[str, str], output: int
    ) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            self._command,
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )

    def _fork(self, folder: Path, environ: Mapping[str, str], output: int) -> ForkedProcess:
        with open(os.devnull) as nothing:
            return ForkedProcess(
                self._command,
                folder=folder,
                environ=environ,
                stdin=nothing.fileno(),
                stdout=output,
                stderr=output,
            )

    def _read(self) -> None:
        for line in self._stdout:
            with self._news:
                self._lines.append(line)
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()


def free_port() -> int:
    """Return a port of the loopback address that nothing listens on."""
    while True:
        port = secrets.choice(_FREE_PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def command(name: str) -> str:
    """Return the path of a command installed beside this interpreter."""
    return str(Path(PYTHON).with_name(name))
