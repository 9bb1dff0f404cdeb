"""The process that keeps a gateway running: what `gateway up` turns into.

The command reads the settings, and with them come libraries larger than all that is left
to do. So it gives way to `python -m services.supervisor`, with the few settings it needs:
half of the memory for as long as the gateway runs. The programs it starts read the
settings by themselves.
"""

import sys

from services.common.imports import import_without_tls
from services.supervisor.config import Orders


def main() -> int:
    """Keep a gateway running until it is told to stop; return the exit status."""
    try:
        import_without_tls("asyncio")
        import asyncio

        from services.common import logs
        from services.supervisor.gateway import up
        from services.supervisor.supervisor import StartError

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
