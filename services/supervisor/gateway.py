"""Run a gateway on this machine: the implementation of `gateway up`.

1. Lock the data folder: at most one gateway uses it. Recreate the runtime folder for sockets and
   counters, which may contain files of a killed gateway.
2. Reserve the ports without listening on them: a port in use is reported now, and port 0 is
   replaced by a free port.
3. Start the workers, all on the same ports (SO_REUSEPORT). Each prepares the database
   (`services.worker.prepare`) unless that has been done.
4. When all workers are ready, print the address of the gateway and an example request.
5. On SIGTERM or SIGINT the workers give notice, then accept no more requests and finish running
   ones; a second signal ends everything at once. On SIGHUP they reload the settings.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress

from services.supervisor.config import SupervisorConfig
from services.supervisor.greeting import base_url, greeting
from services.supervisor.process import Program, StartError
from services.supervisor.resources import held_port, locked, runtime_folder, short_path
from services.supervisor.supervisor import Supervisor

KEY_FILE = "dev.key"
METRICS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"

_HTTP_SETTINGS = "GATEWAY_PORT and GATEWAY_HOST"
_METRICS_SETTINGS = "GATEWAY_METRICS_PORT and server.metrics_host"
_GRPC_SETTINGS = "server.grpc"

# Returns the programs to run; called with the folder for their sockets, the port for HTTP and the
# port for operators.
MakePrograms = Callable[[str, int, int], Sequence[Program]]


def run_gateway(config: SupervisorConfig, *, make_programs: MakePrograms | None = None) -> None:
    """Run a gateway until a signal ends it; print its address once it is ready.

    Args:
        config: settings of the supervisor; the programs read all settings themselves.
        make_programs: returns the programs to run; by default the gateway's workers.

    Raises:
        StartError: another gateway uses the data folder, a port is in use, the database cannot
            be prepared, a program does not start, or the start is interrupted.
    """
    _close_inherited_on_exec()
    with ExitStack() as stack:
        publish = stack.enter_context(locked(config.data_dir))
        folder = stack.enter_context(runtime_folder(config.data_dir))
        sockets, descriptors = stack.enter_context(short_path(folder))
        port = stack.enter_context(held_port(config.host, config.port, _HTTP_SETTINGS))
        metrics_port = stack.enter_context(
            held_port(config.metrics_host, config.metrics_port, _METRICS_SETTINGS)
        )
        grpc = config.grpc
        if grpc:
            grpc_host, _, grpc_port = grpc.rpartition(":")
            reserved = held_port(grpc_host.strip("[]"), int(grpc_port), _GRPC_SETTINGS)
            grpc = f"{grpc_host}:{stack.enter_context(reserved)}"
        metrics = os.path.abspath(os.path.join(folder, "metrics"))
        os.mkdir(metrics, mode=0o700)
        make_programs = make_programs or worker_programs(config.host, config.workers, grpc)
        supervisor = Supervisor(
            make_programs(sockets, port, metrics_port),
            environ={**os.environ, METRICS_VARIABLE: metrics},
            pass_fds=descriptors,
            drain_s=config.drain_s,
            stall_s=config.stall_s,
            on_end=lambda pid: _remove_gauges(pid, metrics),
        )
        stack.callback(supervisor.close)
        is_ready = is_interrupted = False

        def announce(message: str) -> None:
            nonlocal is_ready
            is_ready = True
            key, _, code = message.partition(" ")
            url = base_url(config.host, port, config.scheme)
            publish(url)
            text = greeting(
                url,
                base_url(config.metrics_host, metrics_port),
                key,
                os.path.join(config.data_dir, KEY_FILE),
                grpc,
                code,
                has_sandbox=config.has_sandbox,
            )
            print(text, flush=True)

        def interrupt() -> None:
            nonlocal is_interrupted
            is_interrupted = True
            supervisor.stop()

        handlers = {
            signal.SIGCHLD: supervisor.wake,
            signal.SIGHUP: supervisor.reload,
            signal.SIGINT: interrupt,
            signal.SIGTERM: supervisor.stop,
        }
        with _signal_handlers(handlers, supervisor.wakeup):
            supervisor.run(announce)
        if is_interrupted and not is_ready:
            raise StartError("interrupted before the gateway was ready")


def worker_programs(host: str, workers: int, grpc: str = "") -> MakePrograms:
    """Return a function that returns the programs of a gateway: its workers.

    The workers share the address `grpc` for gRPC callers; if it is "", each listens on a Unix
    socket.
    """

    def make(folder: str, port: int, metrics_port: int) -> Sequence[Program]:
        # -P keeps a folder called `services` in the working directory off the module path.
        # no_debug_ranges: without the column numbers that tracebacks show, code takes 0.5 MB less.
        module = (sys.executable, "-P", "-X", "no_debug_ranges", "-m", "services.worker")
        ports = ("--port", str(port), "--metrics-port", str(metrics_port))
        common = (*module, "--host", host, *ports)
        return [
            Program(f"worker {number}", (*common, "--grpc", grpc or f"unix:{folder}/{number}.sock"))
            for number in range(workers)
        ]

    return make


@contextmanager
def _signal_handlers(
    handlers: Mapping[signal.Signals, Callable[[], None]], wakeup: int
) -> Iterator[None]:
    """Install signal handlers; each signal also writes a byte to the descriptor `wakeup`."""
    before = {
        number: signal.signal(number, lambda number, _frame: handlers[signal.Signals(number)]())
        for number in handlers
    }
    previous_wakeup = signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(previous_wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)


def _close_inherited_on_exec() -> None:
    """Set close-on-exec for the descriptors that this process inherited."""
    # The list includes the descriptor that read the folder, which is closed by now.
    for name in os.listdir("/dev/fd"):
        if int(name) > 2:
            with suppress(OSError):
                os.set_inheritable(int(name), False)


def _remove_gauges(pid: int, metrics: str) -> None:
    """Remove the gauges of an ended process from the sums of /metrics."""
    # Imported when a process ends, which is rare, rather than kept in memory.
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(pid, metrics)  # type: ignore[no-untyped-call]  # no types there
