"""What `gateway up` tells the process that it turns into: the few settings a keeper needs."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from services.common.settings import Settings


class Orders(NamedTuple):
    """What a keeper is told.

    Attributes:
        host: address that the facades listen on.
        port: and their port; 0 for any free one.
        metrics_host: address of their listener for whoever runs the gateway.
        metrics_port: and its port; 0 for any free one.
        data_dir: the folder of which one gateway at a time may make use.
        drain_s: seconds that a program takes at most to end what it has in hand.
        workers: how many to run.
        grpc: `host:port` of gRPC callers, port 0 for any free one; "" for sockets in `data_dir`.
    """

    host: str
    port: int
    metrics_host: str
    metrics_port: int
    data_dir: Path
    drain_s: float
    workers: int
    grpc: str

    @classmethod
    def of(cls, settings: "Settings", workers: int) -> Self:
        """Take from the settings what concerns the keeper."""
        server, drain_s = settings.server, settings.limits.drain_s
        return cls(
            server.host,
            server.port,
            server.metrics_host,
            server.metrics_port,
            settings.storage.data_dir,
            drain_s,
            workers,
            server.grpc,
        )

    @classmethod
    def read(cls, arguments: Sequence[str]) -> Self:
        """Read the arguments that `command` gives."""
        host, port, metrics_host, metrics_port, data_dir, drain_s, workers, grpc = arguments
        return cls(
            host,
            int(port),
            metrics_host,
            int(metrics_port),
            Path(data_dir),
            float(drain_s),
            int(workers),
            grpc,
        )

    def command(self) -> list[str]:
        """Return the command that carries them out."""
        # -P keeps a folder of that name in the working directory out.
        return [sys.executable, "-P", "-m", "services.supervisor", *map(str, self)]
