"""The process that keeps a gateway running: what `gateway up` turns into.

The command reads the settings, and with them come libraries larger than all that is left
to do. So it gives way to `python -m services.keeper`, told the few settings that it needs:
half of the memory for as long as the gateway runs. The programs it starts read the
settings by themselves.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from services.common.imports import without_tls

if TYPE_CHECKING:
    from services.common.settings import Settings


class Orders(NamedTuple):
    """What a keeper is told.

    Attributes:
        host: address that the facades listen on.
        port: and their port; 0 for any free one.
        data_dir: the folder of which one gateway at a time may make use.
        drain_s: seconds that a program takes at most to end what it has in hand.
        workers: how many pairs of facade and services to run.
    """

    host: str
    port: int
    data_dir: Path
    drain_s: float
    workers: int

    @classmethod
    def of(cls, settings: "Settings", workers: int) -> Self:
        """Take from the settings what concerns the keeper."""
        server, drain_s = settings.server, settings.limits.drain_s
        return cls(server.host, server.port, settings.storage.data_dir, drain_s, workers)

    @classmethod
    def read(cls, arguments: Sequence[str]) -> Self:
        """Read the arguments that `command` gives."""
        host, port, data_dir, drain_s, workers = arguments
        return cls(host, int(port), Path(data_dir), float(drain_s), int(workers))

    def command(self) -> list[str]:
        """Give the command that carries them out."""
        # -P keeps a folder of that name in the working directory out.
        return [sys.executable, "-P", "-m", "services.keeper", *map(str, self)]


def main() -> int:
    """Keep a gateway running until it is told to stop; give the exit status."""
    try:
        with without_tls():
            import asyncio

        from services.common import logs
        from services.supervisor import StartError
        from services.up import up

        logs.configure()
        try:
            asyncio.run(up(Orders.read(sys.argv[1:])))
        except StartError as error:
            return _failed(str(error))
    except KeyboardInterrupt:
        return _failed("interrupted before the gateway was ready")
    return 0


def _failed(reason: str) -> int:
    print(f"gateway: {reason}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
