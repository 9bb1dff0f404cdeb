"""Run a gateway and a real Envoy in front of it; both start and stop together.

    python envoy/run.py --port 10000 -- --workers 2

Arguments after `--` are passed to `gateway up`. Settings come from the usual file and environment;
if they have no address for gRPC callers, a free port on loopback is chosen.
"""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from services.commands.envoy import free_port
from services.common.settings import load

# Seconds that `gateway envoy run` may take to stop after the drain, and a little more.
_MARGIN_S = 15.0


async def run(arguments: argparse.Namespace, gateway_arguments: list[str]) -> int:
    """Run both until a signal comes or one of them ends; return the exit status."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    environ = dict(os.environ)
    if not load().server.grpc:
        environ["GATEWAY_GRPC"] = f"127.0.0.1:{arguments.grpc_port or free_port(0, '127.0.0.1')}"
    options = [
        f"--{name}={value}" for name, value in vars(arguments).items() if name != "grpc_port"
    ]
    envoy = await start(environ, "envoy", "run", *(option.replace("_", "-") for option in options))
    gateway = await start(environ, "up", *gateway_arguments)
    ends = [asyncio.create_task(process.wait()) for process in (gateway, envoy)]
    stopped = asyncio.create_task(stopping.wait())
    await asyncio.wait([stopped, *ends], return_when=asyncio.FIRST_COMPLETED)
    # Envoy last: running streams pass through it.
    for process in (gateway, envoy):
        await stop(process)
    return 0 if stopped.done() else 1


async def start(environ: Mapping[str, str], *arguments: str) -> asyncio.subprocess.Process:
    """Start a command of `gateway` in a session of its own, so that Ctrl-C does not reach it."""
    command = Path(sys.executable).with_name("gateway")
    return await asyncio.create_subprocess_exec(
        command, *arguments, env=environ, start_new_session=True
    )


async def stop(process: asyncio.subprocess.Process) -> None:
    """Stop a process; kill it if it takes longer than its drain time."""
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), load().limits.drain_s + _MARGIN_S)
    except TimeoutError:
        process.kill()
        await process.wait()


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description="Run Envoy in front of `gateway up`.")
    parser.add_argument("--port", type=int, default=10000, help="of Envoy; 0: any")
    parser.add_argument("--admin-port", type=int, default=9901, help="on loopback; 0: any")
    parser.add_argument("--grpc-port", type=int, default=0, help="of gRPC callers; 0: any")
    parser.add_argument("--concurrency", type=int, default=os.cpu_count() or 1, help="threads")
    options, envoy_options = parser.parse_known_args()
    raise SystemExit(
        asyncio.run(
            run(options, envoy_options[1:] if envoy_options[:1] == ["--"] else envoy_options)
        )
    )


if __name__ == "__main__":
    main()
