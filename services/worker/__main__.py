"""Runs a whole gateway in one process: `python -m services.worker`."""

import argparse

from services.common import process, settings
from services.common.ids import Source
from services.common.imports import import_bare, import_without_tls


def import_what_is_used() -> None:
    """Import two libraries without the parts that a worker has no use for: 9 MB of them.

    Whoever speaks TLS to callers stands before the gateway, and its repositories know
    connections, but no sessions and no mapped classes.
    """
    import_without_tls("aiohttp.web")
    names = ("AsyncConnection", "AsyncEngine", "create_async_engine")
    import_bare("sqlalchemy.ext.asyncio", "engine", *names)


def main() -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(prog="worker", description=__doc__)
    parser.add_argument("--host", required=True, help="address to listen on for HTTP")
    parser.add_argument("--port", type=int, required=True, help="its port")
    parser.add_argument("--metrics-port", type=int, required=True, help="port of /metrics")
    parser.add_argument("--grpc", default="", help="host:port or unix:/path for gRPC callers")
    parser.add_argument("--parent-pipe", type=int, help="descriptor that closes with the parent")
    arguments = parser.parse_args()

    async def serve(lifecycle: process.Lifecycle) -> None:
        # Imported here: gRPC and the counters are set up first, and --help answers at once.
        import_what_is_used()
        from services.worker.prepare import NotPreparedError, prepare

        try:
            loaded = settings.load()
            key = await prepare(loaded)
        except (settings.SettingsError, NotPreparedError) as error:
            lifecycle.fail(str(error))

        from services.worker.assembly import Worker

        worker = await Worker.start(
            loaded,
            Source(),
            host=arguments.host,
            port=arguments.port,
            metrics_port=arguments.metrics_port,
            grpc=arguments.grpc,
        )
        lifecycle.on_reload = worker.services.reload
        lifecycle.ready(key or "")
        await lifecycle.stopping.wait()
        await worker.stop(lifecycle.hurrying)

    process.run(serve, arguments.parent_pipe)


if __name__ == "__main__":
    main()
