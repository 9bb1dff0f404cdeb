"""Entry point of `python -m services [accounts inference …]`: gRPC services in one process."""

import argparse

from services import SERVICES
from services.common import settings
from services.common.clock import Clock
from services.common.process import lifetime as process


def _known(name: str) -> str:
    if name not in SERVICES:
        raise argparse.ArgumentTypeError(
            f"unknown service {name!r}; the services are {', '.join(SERVICES)}"
        )
    return name


def main() -> None:
    """Serve the services named on the command line until a signal ends the process."""
    parser = argparse.ArgumentParser(prog="services", description=__doc__)
    parser.add_argument(
        "services",
        nargs="*",
        type=_known,
        metavar="SERVICE",
        help=f"services to run: {', '.join(SERVICES)} (default: all)",
    )
    parser.add_argument(
        "--listen",
        default="127.0.0.1:50051",
        help="host:port or unix:/path to listen on (default: %(default)s)",
    )
    parser.add_argument(
        "--parent-pipe", type=int, help="file descriptor that closes when the parent process ends"
    )
    parser.add_argument(
        "--beat-pipe", type=int, help="file descriptor that the event loop writes to while it runs"
    )
    arguments = parser.parse_args()
    names = arguments.services or SERVICES

    async def serve(lifecycle: process.Lifecycle) -> None:
        # Imported here, so that --help and invalid options respond at once.
        from services.assembly import Services
        from services.common.ids import new_id
        from services.common.process.telemetry.opening import open_telemetry

        loaded = settings.load()
        telemetry = open_telemetry(
            loaded.telemetry,
            new_id("process_"),
            is_required=loaded.request_log.requires_collector,
        )
        services = await Services.start(
            names, arguments.listen, loaded, Clock(), telemetry=telemetry
        )
        lifecycle.on_reload = services.reload
        lifecycle.ready()
        await lifecycle.stopping.wait()
        await services.stop(lifecycle.cancelling)
        if telemetry is not None:
            await telemetry.stop()

    process.run(serve, arguments.parent_pipe, arguments.beat_pipe)


if __name__ == "__main__":
    main()
