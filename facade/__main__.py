"""Runs a facade: `python -m facade --services unix:/path`."""

import argparse
import logging

from services.common import settings
from services.common.clock import Clock
from services.common.process import lifetime as process
from services.common.process.imports import import_without_tls

log = logging.getLogger(__name__)


def main() -> None:
    """Serve HTTP until stopped by a signal."""
    parser = argparse.ArgumentParser(prog="facade", description=__doc__)
    parser.add_argument(
        "--services",
        default="127.0.0.1:50051",
        help="host:port or unix:/path of the services (default: %(default)s)",
    )
    parser.add_argument("--host", help="address to listen on (default: from the settings)")
    parser.add_argument("--port", type=int, help="port to listen on (default: from the settings)")
    parser.add_argument(
        "--metrics-port", type=int, help="port of /metrics (default: from the settings)"
    )
    parser.add_argument(
        "--parent-pipe",
        type=int,
        help="file descriptor of a pipe that closes when the parent process exits",
    )
    parser.add_argument(
        "--beat-pipe", type=int, help="file descriptor that the event loop writes to while it runs"
    )
    arguments = parser.parse_args()

    async def serve(lifecycle: process.Lifecycle) -> None:
        # Imported here, so that --help and invalid options respond at once. TLS is terminated by a
        # proxy.
        import_without_tls("aiohttp")
        from facade.server import Facade
        from services.common.grpc.channels import open_channel
        from services.common.grpc.tls import channel_credentials
        from services.common.ids import new_id
        from services.common.process.telemetry.opening import open_telemetry

        loaded = settings.load()
        if loaded.request_log.enabled:
            log.warning("a facade in a process of its own keeps no request log")
        telemetry = open_telemetry(loaded.telemetry, new_id("process_"))
        server = loaded.server
        channel = open_channel(
            arguments.services,
            max_message_bytes=loaded.limits.max_message_bytes,
            credentials=channel_credentials(loaded.grpc),
        )
        facade = await Facade.start(
            channel,
            server.host if arguments.host is None else arguments.host,
            server.port if arguments.port is None else arguments.port,
            loaded,
            Clock(),
            metrics_port=(
                server.metrics_port if arguments.metrics_port is None else arguments.metrics_port
            ),
            telemetry=telemetry,
        )
        lifecycle.on_reload = facade.reload_certificate
        lifecycle.ready()
        await lifecycle.stopping.wait()
        await facade.give_notice(lifecycle.cancelling)
        await facade.stop()
        await channel.close()
        if telemetry is not None:
            await telemetry.stop()

    process.run(serve, arguments.parent_pipe, arguments.beat_pipe)


if __name__ == "__main__":
    main()
