"""Run a real Envoy in front of a gateway; everything starts and stops together.

    python envoy/run.py --port 10000 -- --workers 2

HTTP and gRPC go to `gateway up`, which gets what stands after `--`. Settings come from the
usual file and environment. With `--facade-port` it runs already, and only Envoy is started.
"""

import argparse
import asyncio
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

CONFIG = Path(__file__).with_name("envoy.yaml")
READY_WITHIN_S = 60.0
STOP_WITHIN_S = 10.0
POLL_S = 0.1


def with_ports(config: str, ports: Mapping[str, int]) -> str:
    """Set the ports of a configuration: those on lines that end in `# port: <name>`.

    Raises:
        ValueError: a name has no such line.
    """
    for name, port in ports.items():
        line = re.compile(rf"(port_value: )\d+( \}} # port: {re.escape(name)})$", re.MULTILINE)
        config, found = line.subn(rf"\g<1>{port}\g<2>", config)
        if not found:
            raise ValueError(f"no line is marked `# port: {name}`")
    return config


def render(folder: str, ports: Mapping[str, int]) -> str:
    """Write the configuration with its ports set; give the file's name."""
    rendered = Path(folder, CONFIG.name)
    rendered.write_text(with_ports(CONFIG.read_text(), ports))
    return str(rendered)


def free_port() -> int:
    """Return a port of the loopback address that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def answers(port: int, path: str) -> bool:
    """Return whether `GET path` on a loopback port answers 200."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\r\n".encode())
        return (await reader.readline()).split(b" ")[1:2] == [b"200"]
    except OSError:
        return False
    finally:
        writer.close()


async def until_ready(port: int) -> None:
    """Wait until the whole way, Envoy and gateway, answers."""
    while not await answers(port, "/readyz"):  # noqa: ASYNC110 - other processes; nothing signals
        await asyncio.sleep(POLL_S)


async def stop(process: asyncio.subprocess.Process, within_s: float | None = None) -> None:
    """End a process, by force when it takes longer than `within_s`."""
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), within_s)
    except TimeoutError:
        process.kill()
        await process.wait()


def beside_python(name: str) -> str:
    """Find a command, first in the folder of this interpreter."""
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which(name, path=folders)
    if found is None:
        raise SystemExit(f"{name}: no such command; `make setup` installs it")
    return found


async def run(arguments: argparse.Namespace, gateway_arguments: Sequence[str]) -> int:
    """Run until a signal comes or one of the two ends; give the exit status."""
    ports = {
        "listen": arguments.port or free_port(),
        "admin": arguments.admin_port or free_port(),
        "facade": arguments.facade_port or free_port(),
        "services": arguments.services_port or free_port(),
    }
    asked_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked_to_stop.set)
    behind: list[asyncio.subprocess.Process] = []
    with tempfile.TemporaryDirectory(prefix="envoy-") as folder:
        config = render(folder, ports)
        envoy = await start(
            *("envoy", "--config-path", config, "--log-level", "warning"),
            *("--use-dynamic-base-id", "--concurrency", str(arguments.concurrency)),
        )
        try:
            if not arguments.facade_port:
                own = {
                    "GATEWAY_PORT": str(ports["facade"]),
                    "GATEWAY_GRPC": f"127.0.0.1:{ports['services']}",
                }
                behind.append(await start("gateway", "up", *gateway_arguments, environ=own))
            return await supervise([envoy, *behind], ports["listen"], asked_to_stop)
        finally:
            # Envoy last: what streams runs through it.
            await asyncio.gather(*map(stop, behind))
            await stop(envoy, STOP_WITHIN_S)


async def start(
    command: str, *arguments: str, environ: Mapping[str, str] | None = None
) -> asyncio.subprocess.Process:
    """Start a command of this environment, out of the reach of a Ctrl-C in the terminal."""
    return await asyncio.create_subprocess_exec(
        beside_python(command),
        *arguments,
        env={**os.environ, **(environ or {})},
        start_new_session=True,
    )


async def supervise(
    processes: Sequence[asyncio.subprocess.Process], port: int, asked_to_stop: asyncio.Event
) -> int:
    """Say when requests are answered, then wait for a signal (0) or an early end (1)."""
    end = asyncio.ensure_future(asked_to_stop.wait())
    deaths = [asyncio.ensure_future(process.wait()) for process in processes]
    ready = asyncio.ensure_future(asyncio.wait_for(until_ready(port), READY_WITHIN_S))
    try:
        await asyncio.wait([end, ready, *deaths], return_when=asyncio.FIRST_COMPLETED)
        if ready.done():
            await ready
            print(f"envoy listens on http://127.0.0.1:{port}", flush=True)
            await asyncio.wait([end, *deaths], return_when=asyncio.FIRST_COMPLETED)
        return 0 if end.done() else 1
    except TimeoutError:
        print(f"not ready after {READY_WITHIN_S:.0f} s", file=sys.stderr)
        return 1
    finally:
        for waiting in (end, ready, *deaths):
            waiting.cancel()


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="Run Envoy in front of `gateway up`.")
    parser.add_argument("--port", type=int, default=10000, help="of Envoy; 0: any")
    parser.add_argument("--admin-port", type=int, default=9901, help="on loopback; 0: any")
    parser.add_argument("--facade-port", type=int, default=0, help="of a gateway that runs already")
    parser.add_argument("--services-port", type=int, default=0, help="of its services; 0: any")
    parser.add_argument("--concurrency", type=int, default=os.cpu_count() or 1, help="threads")
    own, rest = parser.parse_known_args()
    gateway_arguments = rest[1:] if rest[:1] == ["--"] else rest
    raise SystemExit(asyncio.run(run(own, gateway_arguments)))


if __name__ == "__main__":
    main()
