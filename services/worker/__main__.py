"""Entry point of `python -m services.worker`: a whole gateway in one process."""

import argparse
import gc


def main() -> None:
    """Serve until a signal ends the process."""
    parser = argparse.ArgumentParser(prog="worker", description=__doc__)
    parser.add_argument("--host", required=True, help="address to listen on for HTTP")
    parser.add_argument("--port", type=int, required=True, help="port to listen on for HTTP")
    parser.add_argument("--metrics-port", type=int, required=True, help="port of /metrics")
    parser.add_argument("--grpc", default="", help="host:port or unix:/path for gRPC callers")
    parser.add_argument(
        "--parent-pipe", type=int, help="file descriptor that closes when the parent process ends"
    )
    parser.add_argument(
        "--beat-pipe", type=int, help="file descriptor that the event loop writes to while it runs"
    )
    parser.add_argument(
        "--replaces", default="", help="why the worker ended that this one replaces: died, stalled"
    )
    arguments = parser.parse_args()

    # Nearly all that is imported stays: collections meanwhile would find nothing, and take a sixth
    # of the time. They begin once the process is ready.
    gc.disable()
    # Imported here, so that --help and invalid options respond at once.
    from services.worker.imports import import_used_parts

    import_used_parts()
    from services.common.process import lifetime as process

    async def serve(lifecycle: process.Lifecycle) -> None:
        # Imported after `process.run` has set the variables that gRPC reads when it is imported.
        from services.worker.worker import run_worker

        await run_worker(
            lifecycle,
            host=arguments.host,
            port=arguments.port,
            metrics_port=arguments.metrics_port,
            grpc=arguments.grpc,
            replaces=arguments.replaces,
        )

    process.run(serve, arguments.parent_pipe, arguments.beat_pipe)


if __name__ == "__main__":
    main()
