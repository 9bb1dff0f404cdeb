"""Stand-ins for workers: they follow the commands of a test and report their signals."""

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from services.supervisor.process import Program

# Seconds after which a test fails that waits for something.
PATIENCE_S = 30

# Reports its name and signals on the test's socket, and runs the commands that it reads there.
_SCRIPT = """
import json, os, select, signal, socket, sys
name, address = sys.argv[1:3]
pipe = int(sys.argv[sys.argv.index("--parent-pipe") + 1])
beats = int(sys.argv[sys.argv.index("--beat-pipe") + 1]) if "--beat-pipe" in sys.argv else None
test = socket.socket(socket.AF_UNIX)
test.connect(address)
def say(text):
    test.sendall(text.encode() + b"\\n")
# A signal that comes just before `select` waits does not interrupt it: its byte does.
woken, wakes = socket.socketpair()
wakes.setblocking(False)
signal.set_wakeup_fd(wakes.fileno())
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(number, lambda number, _: say(signal.Signals(number).name))
say(json.dumps([name, os.getpid(), dict(os.environ)]))
while True:
    readable, _, _ = select.select([test, pipe, woken], [], [])
    if woken in readable:
        woken.recv(64)
    if pipe in readable:
        say("orphaned")
        break
    if test not in readable:
        continue
    commands = test.recv(65536).decode()
    if not commands:
        break
    for line in commands.splitlines():
        word, _, rest = line.partition(" ")
        if word == "exit":
            os._exit(int(rest))
        elif word == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif word == "leave" and os.fork():
            os._exit(int(rest))
        elif word == "leave":
            test.close()
            os.read(pipe, 1)
            os._exit(0)
        elif word == "beat":
            os.write(beats, json.loads(rest).encode())
        elif word == "write":
            os.write(1, json.loads(rest).encode())
        say("done")
"""


@dataclass
class StandIn:
    """A process of a program."""

    name: str
    pid: int
    environ: dict[str, str]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def heard(self) -> str:
        """Return its next report: a signal's name, `orphaned`, or "" when it has ended."""
        async with asyncio.timeout(PATIENCE_S):
            return (await self.reader.readline()).decode().strip()

    def tell(self, command: str) -> None:
        self.writer.write(f"{command}\n".encode())

    async def write(self, text: str) -> None:
        """Make it write to its standard output."""
        self.tell(f"write {json.dumps(text)}")
        assert await self.heard() == "done"

    async def beat(self, text: str = "\0") -> None:
        """Make it write to the pipe of its beats."""
        self.tell(f"beat {json.dumps(text)}")
        assert await self.heard() == "done"

    async def ready(self) -> None:
        await self.write("READY\n")


class StandIns:
    """The stand-ins of a test, which connect to its socket."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._started: dict[str, asyncio.Queue[StandIn]] = {}
        self.writers: list[asyncio.StreamWriter] = []

    def program(self, name: str) -> Program:
        argv = (sys.executable, "-I", "-S", "-c", _SCRIPT, name, self._address)
        return Program(name, argv)

    async def started(self, name: str) -> StandIn:
        """Return the next process of a program, once it has started."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._queue(name).get()

    async def ready(self, *names: str) -> list[StandIn]:
        """Wait for programs to start, and make them report that they are ready."""
        runs = [await self.started(name) for name in names]
        for run in runs:
            await run.ready()
        return runs

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        name, pid, environ = json.loads(await reader.readline())
        self._queue(name).put_nowait(StandIn(name, pid, environ, reader, writer))

    def _queue(self, name: str) -> asyncio.Queue[StandIn]:
        return self._started.setdefault(name, asyncio.Queue())


@asynccontextmanager
async def stand_ins() -> AsyncIterator[StandIns]:
    """Listen for stand-ins on a socket with a short path."""
    with tempfile.TemporaryDirectory(prefix="gw-", dir="/tmp") as folder:
        address = str(Path(folder, "test.sock"))
        programs = StandIns(address)
        server = await asyncio.start_unix_server(programs.connected, address)
        try:
            yield programs
        finally:
            server.close()
            for writer in programs.writers:
                writer.close()
            await server.wait_closed()
