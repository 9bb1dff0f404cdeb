"""Settings of the supervisor, and the command line that passes them to its process."""

import sys
from collections.abc import Sequence


class SupervisorConfig:
    """The few settings that the supervisor needs; the workers read all settings themselves.

    Attributes:
        host: address that the workers listen on for HTTP.
        port: port for HTTP; 0 for any free port.
        metrics_host: address of the listener for operators.
        metrics_port: port of the listener for operators; 0 for any free port.
        data_dir: data folder; at most one gateway uses it at a time.
        drain_s: seconds that a worker may take to give notice and to finish running requests.
        workers: number of worker processes.
        grpc: `host:port` for gRPC callers, port 0 for any free port; "" for a Unix socket a
            worker, in `data_dir`.
        scheme: of the address for HTTP, `http` or `https`.
        stall_s: seconds after which a worker whose event loop does not run is killed; 0: never.
        has_sandbox: whether the sandbox's models can be called at the start.
    """

    def __init__(
        self,
        *,
        host: str,
        port: int,
        metrics_host: str,
        metrics_port: int,
        data_dir: str,
        drain_s: float,
        workers: int,
        grpc: str,
        scheme: str = "http",
        stall_s: float = 0,
        has_sandbox: bool = False,
    ) -> None:
        self.host = host
        self.port = port
        self.metrics_host = metrics_host
        self.metrics_port = metrics_port
        self.data_dir = data_dir
        self.drain_s = drain_s
        self.workers = workers
        self.grpc = grpc
        self.scheme = scheme
        self.stall_s = stall_s
        self.has_sandbox = has_sandbox

    @classmethod
    def parse(cls, arguments: Sequence[str]) -> "SupervisorConfig":
        """Parse the arguments of a command line that `command` returned."""
        host, port, metrics_host, metrics_port, *options = arguments
        data_dir, drain_s, workers, grpc, scheme, stall_s, has_sandbox = options
        return cls(
            host=host,
            port=int(port),
            metrics_host=metrics_host,
            metrics_port=int(metrics_port),
            data_dir=data_dir,
            drain_s=float(drain_s),
            workers=int(workers),
            grpc=grpc,
            scheme=scheme,
            stall_s=float(stall_s),
            has_sandbox=has_sandbox == str(True),
        )

    def command(self) -> list[str]:
        """Return the command line of a supervisor with these settings."""
        # -P keeps a folder called `services` in the working directory off the module path.
        # no_debug_ranges: without the column numbers that tracebacks show, it takes 0.6 MB less.
        module = [sys.executable, "-P", "-X", "no_debug_ranges", "-m", "services.supervisor"]
        return module + [str(value) for value in vars(self).values()]
