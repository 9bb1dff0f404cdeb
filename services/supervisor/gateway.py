"""What `gateway up` does.

1. Take the lock of the data folder: one gateway a folder. Clear what a killed one left in
   the folder for sockets and counters, which is inside.
2. Take the two ports without listening on them: what is in the way is told now, and port 0
   becomes a number.
3. Start the workers, all on the same two ports (SO_REUSEPORT). Each prepares the database
   (`services.worker.prepare`) where that is still to do.
4. Once all are ready, say where the gateway is and how to talk to it.
5. On SIGTERM or SIGINT the workers take no more requests and let streams end; a second
   signal ends everything at once. On SIGHUP the settings are read again.
"""

import asyncio
import fcntl
import os
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from services.supervisor.config import Orders
from services.supervisor.supervisor import Program, StartError, Supervisor

LOCK_FILE = "gateway.lock"
RUNTIME_FOLDER = "run"
KEY_FILE = "dev.key"
METRICS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"

# Each a module of ours; -P keeps a folder of that name in the working directory out.
_PYTHON = (sys.executable, "-P", "-m")
# The longest path that a Unix socket may have on every system is a little above.
_LONGEST_SOCKET = 100
_DESCRIPTORS = Path("/proc/self/fd")
_SETTINGS = "GATEWAY_PORT and GATEWAY_HOST"
_GRPC_SETTINGS = "server.grpc"
_METRICS_SETTINGS = "GATEWAY_METRICS_PORT and server.metrics_host"
_WILDCARDS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}

# Returns the programs to keep, from the folder for their sockets, the port and the port for
# whoever runs the gateway.
MakePrograms = Callable[[Path, int, int], Sequence[Program]]


async def up(
    orders: Orders,
    *,
    make_programs: MakePrograms | None = None,
    output: TextIO = sys.stdout,
) -> None:
    """Run a gateway until a signal ends it.

    Args:
        orders: what it is; the programs read the settings by themselves.
        make_programs: what to run; the gateway's own programs when left out.
        output: where to say that the gateway is ready, and how to talk to it.

    Raises:
        StartError: another gateway holds the data folder, the port is taken, the database
            cannot be prepared, a program does not come up, or the start is interrupted.
    """
    host = orders.host
    with ExitStack() as stack:
        stack.enter_context(locked(orders.data_dir))
        folder = stack.enter_context(runtime_folder(orders.data_dir))
        sockets, passed = stack.enter_context(short_path(folder))
        port = stack.enter_context(held_port(host, orders.port))
        metrics_host = orders.metrics_host
        metrics_port = stack.enter_context(
            held_port(metrics_host, orders.metrics_port, _METRICS_SETTINGS)
        )
        grpc = orders.grpc
        if grpc:
            grpc_host, _, grpc_port = grpc.rpartition(":")
            shared = held_port(grpc_host.strip("[]"), int(grpc_port), _GRPC_SETTINGS)
            grpc = f"{grpc_host}:{stack.enter_context(shared)}"
        metrics = folder / "metrics"
        metrics.mkdir(mode=0o700)
        make_programs = make_programs or gateway_programs(host, orders.workers, grpc)
        supervisor = Supervisor(
            make_programs(sockets, port, metrics_port),
            environ={**os.environ, METRICS_VARIABLE: str(metrics.absolute())},
            pass_fds=passed,
            drain_s=orders.drain_s,
            on_end=lambda pid: _forget_gauges(pid, metrics),
        )
        stack.enter_context(heard(signal.SIGHUP, supervisor.reload))
        stack.enter_context(heard(signal.SIGTERM, supervisor.stop))
        ready, interrupted = asyncio.Event(), asyncio.Event()

        def greet(key: str) -> None:
            ready.set()
            urls = base_url(host, port), base_url(metrics_host, metrics_port)
            print(greeting(*urls, key, orders.data_dir / KEY_FILE, grpc), file=output, flush=True)

        def interrupt() -> None:
            interrupted.set()
            supervisor.stop()

        stack.enter_context(heard(signal.SIGINT, interrupt))
        await supervisor.run(greet)
        if interrupted.is_set() and not ready.is_set():
            raise StartError("interrupted before the gateway was ready")


def gateway_programs(host: str, workers: int, grpc: str = "") -> MakePrograms:
    """Return what makes the gateway's own programs, the workers.

    They share the address `grpc` of gRPC callers; without one each has a socket.
    """

    def make(folder: Path, port: int, metrics_port: int) -> Sequence[Program]:
        ports = ("--port", str(port), "--metrics-port", str(metrics_port))
        common = (*_PYTHON, "services.worker", "--host", host, *ports)
        return [
            Program(f"worker {number}", (*common, "--grpc", grpc or f"unix:{folder}/{number}.sock"))
            for number in range(workers)
        ]

    return make


@contextmanager
def locked(data_dir: Path) -> Iterator[None]:
    """Hold the data folder, made when it is missing, for this process alone.

    Raises:
        StartError: another process holds it, or it cannot be used.
    """
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = open(data_dir / LOCK_FILE, "a+")
        os.fchmod(file.fileno(), 0o600)
    except OSError as error:
        raise StartError(f"{data_dir}: {error.strerror} (storage.data_dir)") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise StartError(
                f"{data_dir}: a gateway runs there already (process {holder}); stop it, or "
                "give this one a data folder of its own (GATEWAY_DATA_DIR) and ports "
                "(GATEWAY_PORT, GATEWAY_METRICS_PORT)"
            ) from error
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


@contextmanager
def held_port(host: str, port: int, settings: str = _SETTINGS) -> Iterator[int]:
    """Keep a port (0: any free one) from every other user; return its number.

    Nothing listens on it yet. Processes of the same user may, with SO_REUSEPORT. `settings`
    says where another one is chosen.

    Raises:
        StartError: somebody listens there, or the address is not one of this machine.
    """
    # Whoever listens with SO_REUSEPORT is found only without it.
    with _bound(host, port, settings, shared=False):
        pass
    with _bound(host, port, settings, shared=True) as holder:
        number: int = holder.getsockname()[1]
        yield number


@contextmanager
def runtime_folder(data_dir: Path) -> Iterator[Path]:
    """Make the folder for what is of one run alone; it goes at the end.

    It is in the data folder, whose lock is held: what a killed run left there goes first.
    This user alone may enter it.
    """
    folder = data_dir / RUNTIME_FOLDER
    if folder.exists():
        _remove(folder)
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise StartError(f"{folder}: {error.strerror} (storage.data_dir)") from error
    try:
        yield folder
    finally:
        _remove(folder)


@contextmanager
def short_path(folder: Path) -> Iterator[tuple[Path, Sequence[int]]]:
    """Return a path to a folder that sockets can have, and the descriptors it needs.

    The path of a socket has 100 characters at most. A folder with a longer one is reached
    through a descriptor, which the programs inherit.

    Raises:
        StartError: the path is too long, and this system has no such paths.
    """
    folder = folder.absolute()
    if len(str(folder / "63.sock")) <= _LONGEST_SOCKET:
        yield folder, ()
    elif not _DESCRIPTORS.is_dir():
        raise StartError(f"{folder}: too long for sockets; choose another storage.data_dir")
    else:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield _DESCRIPTORS / str(descriptor), (descriptor,)
        finally:
            os.close(descriptor)


@contextmanager
def heard(number: signal.Signals, react: Callable[[], None]) -> Iterator[None]:
    """Call `react` on each signal of that number."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(number, react)
    try:
        yield
    finally:
        loop.remove_signal_handler(number)


def base_url(host: str, port: int) -> str:
    """Return the address at which this machine reaches a gateway that listens on `host`."""
    host = _WILDCARDS.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def greeting(url: str, metrics_url: str, key: str, key_file: Path, grpc: str = "") -> str:
    """Return what to tell an operator once requests can come; `key` is "" where there is none."""
    body = '{"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}'
    curl = (
        f"curl {url}/beta/v1/chat/completions -H 'Content-Type: application/json' "
        f'-H "Authorization: Bearer {key or "$GATEWAY_KEY"}" -d {shlex.quote(body)}'
    )
    if key:
        said = [f"API key: {key} (kept in {key_file})", "Try it:"]
    else:
        said = ["Try it:", "  GATEWAY_KEY=$(gateway keys create --user NAME)"]
    where = [f"The gateway listens on {url}", f"Metrics are on {metrics_url}/metrics"]
    if grpc:
        where.append(f"gRPC callers go to {grpc}")
    return "\n".join([*where, *said, f"  {curl}"])


@contextmanager
def _bound(host: str, port: int, settings: str, *, shared: bool) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as bound:
        # Without it connections that ended a moment ago would pass for somebody.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            bound.bind((host, port))
        except OSError as error:
            raise StartError(
                f"{host}:{port}: {error.strerror or error}; free it, or choose another "
                f"with {settings}"
            ) from error
        yield bound


def _remove(folder: Path) -> None:
    # Loaded before and after what lasts, rather than kept in memory all the while.
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def _forget_gauges(pid: int, metrics: Path) -> None:
    """Take what a process that ended was doing out of the sums of /metrics."""
    # Loaded when a process dies, which is rare, rather than kept in memory.
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(pid, str(metrics))  # type: ignore[no-untyped-call]  # no types there
