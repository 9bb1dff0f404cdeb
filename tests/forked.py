"""Processes of the gateway that `tests.fork_server` forks.

`ForkedProcess` is used as `subprocess.Popen`, and what `fork` returns as a process of asyncio.
"""

import asyncio
import atexit
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]
# As many characters as the longest command line of a forked process has.
_PADDING = "-" * 2048
# Asks as `ForkedProcess` does, and ends with the status of the forked process.
_COMMAND = """\
import json, os, socket, sys
status, status_end = socket.socketpair()
request = {{"command": sys.argv, "environ": dict(os.environ), "folder": os.getcwd()}}
descriptors = [0, 1, 2, status_end.fileno()]
socket.send_fds(socket.socket(fileno={server}), [json.dumps(request).encode()], descriptors)
status_end.close()
pid, code = status.makefile().read().split()
sys.exit(int(code) % 256)
"""


class ForkedProcess:
    """A process that the server has forked.

    Attributes:
        pid: its id.
        returncode: its exit status once it is known, negative for a signal.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environ: Mapping[str, str],
        stdin: int,
        stdout: int,
        stderr: int,
    ) -> None:
        """Start the process; the descriptors stay the caller's to close."""
        self.returncode: int | None = None
        self._status, status_end = socket.socketpair()
        request = {"command": [*command], "environ": {**environ}, "folder": str(folder)}
        with status_end:
            descriptors = [stdin, stdout, stderr, status_end.fileno()]
            socket.send_fds(_server(), [json.dumps(request).encode()], descriptors)
        self._read = self._status.makefile()
        self.pid = int(self._line())

    def fileno(self) -> int:
        """Return a descriptor that is readable once the process has ended."""
        return self._status.fileno()

    def poll(self) -> int | None:
        """Return the exit status, or None while the process runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status once the process has ended.

        Raises:
            subprocess.TimeoutExpired: it runs on.
        """
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"{self.pid}", timeout or 0)
            self.returncode = int(self._line())
            self._read.close()
            self._status.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        # The server may have heard of its end, and this process not yet.
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _line(self) -> str:
        line = self._read.readline()
        assert line, "the fork server has ended"
        return line


class AsyncForkedProcess:
    """A process that the server has forked, for use on an event loop.

    Attributes:
        stdout: what it writes to its standard output.
    """

    def __init__(
        self,
        process: ForkedProcess,
        stdin: int,
        stdout: asyncio.StreamReader,
        transport: asyncio.ReadTransport,
    ) -> None:
        self.stdout = stdout
        self._process = process
        self._stdin = open(stdin, "wb", buffering=0)
        self._transport = transport

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit status, or None while the process runs."""
        return self._process.poll()

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        self._process.send_signal(number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Return the exit status once the process has ended; close its input and output."""
        self._stdin.close()
        if self._process.poll() is None:
            loop = asyncio.get_running_loop()
            ended = asyncio.Event()
            loop.add_reader(self._process, ended.set)
            try:
                await ended.wait()
            finally:
                loop.remove_reader(self._process)
        self._transport.close()
        # It is closed by what the loop does next.
        await asyncio.sleep(0)
        return self._process.wait()

    async def communicate(self, text: bytes = b"") -> tuple[bytes, None]:
        """Write to the standard input and close it; return the rest of the standard output."""
        if text:
            self._stdin.write(text)
        self._stdin.close()
        output = await self.stdout.read()
        await self.wait()
        return output, None


async def fork(
    *command: str, environ: Mapping[str, str] | None = None, stderr: int = 2
) -> AsyncForkedProcess:
    """Start a process that runs a module (`-m`) or code (`-c`) of Python, or `gateway`."""
    stdin, to_stdin = os.pipe()
    from_stdout, stdout = os.pipe()
    try:
        process = ForkedProcess(
            command,
            folder=ROOT,
            environ=os.environ if environ is None else environ,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )
    finally:
        os.close(stdin)
        os.close(stdout)
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(from_stdout, "rb", buffering=0)
    )
    return AsyncForkedProcess(process, to_stdin, reader, transport)


def write_command(folder: Path) -> int:
    """Write a command `gateway` for shells, which the server forks; return what it inherits.

    Each of its processes takes a tenth of the processor time of an executed one. The shell has to
    be given the descriptor.
    """
    server = _server().fileno()
    path = folder / "gateway"
    path.write_text(f"#!{sys.executable} -IS\n{_COMMAND.format(server=server)}")
    path.chmod(0o755)
    return server


@functools.cache
def _server() -> socket.socket:
    """Start the server of this process, once."""
    requests, served = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with served:
        process = subprocess.Popen(
            [
                *(sys.executable, "-X", "no_debug_ranges", "-m", "tests.fork_server"),
                *(str(served.fileno()), _PADDING),
            ],
            cwd=ROOT,
            pass_fds=[served.fileno()],
            stdin=subprocess.DEVNULL,
        )
    atexit.register(_stop, requests, process)
    return requests


def _stop(requests: socket.socket, process: "subprocess.Popen[bytes]") -> None:
    requests.close()
    process.wait()
