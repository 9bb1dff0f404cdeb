"""A whole gateway in one process: services, facade and the sandbox as an HTTP upstream.

What a test asks it over HTTP goes the way every request goes, over gRPC and HTTP;
only the processes are missing, which the end-to-end tests have.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

import aiohttp
from aiohttp import web
from prometheus_client import CollectorRegistry

from facade.batch_requests import execute_batch_request, render_batch_request
from facade.server import Facade
from services import SERVICES
from services.accounts.repository import AccountRepository
from services.assembly import Services
from services.common.clock import Clock
from services.common.process.telemetry.opening import open_telemetry
from services.common.settings import Storage, parse
from services.common.storage.database import SQLITE_FILE, open_engine
from services.common.storage.migrations.runner import migrate
from services.common.storage.secrets import load_secrets
from tests.upstream.app import create_app

# The key of a new SQLite file and its content. Making them takes a quarter of a start of a gateway,
# of which tests start hundreds.
_MADE: list[tuple[str, bytes]] = []


@dataclass(frozen=True)
class Gateway:
    """A running gateway.

    Attributes:
        url: where the facade listens.
        metrics_url: where it listens for whoever runs it.
        key: an API key that is good.
        upstream: where the sandbox listens as a provider.
        grpc: where the services listen.
        http: a client to ask with.
        counters: what the services and the facade count.
    """

    url: str
    metrics_url: str
    key: str
    upstream: str
    grpc: str
    http: aiohttp.ClientSession
    counters: CollectorRegistry

    def bearer(self) -> dict[str, str]:
        """Return the headers of a Format A caller."""
        return {"Authorization": f"Bearer {self.key}"}

    def api_key(self) -> dict[str, str]:
        """Return the headers of a Format B caller."""
        return {"x-api-key": self.key, "compat-version": "2023-06-01"}


@asynccontextmanager
async def serving(app: web.Application) -> AsyncIterator[str]:
    """Serve an application on a free port; give its address."""
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def running_gateway(
    folder: Path,
    upstream: web.Application | str | None = None,
    *,
    clock: Clock | None = None,
    services: Sequence[str] = SERVICES,
    environ: Mapping[str, str] = MappingProxyType({}),
    port: int = 0,
    **sections: Mapping[str, Any] | list[Any],
) -> AsyncIterator[Gateway]:
    """Run a gateway on free ports, or with its HTTP API on `port`.

    Its providers `openai`, `anthropic` and `gemini` are `upstream`, an application or the address
    of a server, the sandbox's own when none is given; `services` are those that run; `sections`
    of the settings go over the defaults; telemetry is opened with `environ`.
    """
    clock = clock or Clock()
    counters = CollectorRegistry()
    async with (
        _reached(upstream) as provider,
        aiohttp.ClientSession() as http,
        _socket() as grpc,
    ):
        settings = parse(
            {
                "storage": {"data_dir": str(folder)},
                "discovery": {"enabled": False},
                "sandbox": {"enabled": True},
                "providers": {
                    "openai": {"kind": "openai", "base_url": f"{provider}/v1", "api_key": "k-o"},
                    "anthropic": {"kind": "anthropic", "base_url": provider, "api_key": "k-a"},
                    "gemini": {
                        "kind": "gemini",
                        "base_url": f"{provider}/v1beta",
                        "api_key": "k-g",
                    },
                },
                **sections,
            },
            "the test",
        )
        key = await _tester_key(settings.storage)
        # Apart, services and facade count in files that /metrics adds up; here in one registry.
        with (
            patch("services.assembly.CollectorRegistry", lambda: counters),
            patch("facade.server.CollectorRegistry", lambda: counters),
        ):
            telemetry = open_telemetry(settings.telemetry, "test", environ)
            started = await Services.start(services, grpc, settings, clock, telemetry=telemetry)
            facade = await Facade.start(
                started.channel,
                "127.0.0.1",
                port,
                settings,
                clock,
                identify=started.identify,
                budget=started.budget,
                telemetry=telemetry,
                request_log=started.request_log,
            )
        requests = facade.internal_requests
        started.run_batches(
            partial(execute_batch_request, requests.post),
            partial(render_batch_request, requests.render),
        )
        try:
            url = f"http://127.0.0.1:{facade.port}"
            metrics_url = f"http://127.0.0.1:{facade.metrics_port}"
            yield Gateway(url, metrics_url, key, provider, grpc, http, counters)
        finally:
            # As a worker does.
            await asyncio.gather(facade.stop(), started.stop_listening())
            await started.stop()
            if telemetry is not None:
                await telemetry.stop()


async def _tester_key(storage: Storage) -> str:
    """Return a key of the tester in a database, which is made where there is none."""
    file = storage.data_dir / SQLITE_FILE
    if storage.database_url or file.exists():
        return await _create_tester(storage)
    if not _MADE:
        with TemporaryDirectory(prefix="gateway-") as folder:
            made = Storage(data_dir=Path(folder))
            _MADE.append((await _create_tester(made), (made.data_dir / SQLITE_FILE).read_bytes()))
    key, content = _MADE[0]
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.touch(mode=0o600)
    file.write_bytes(content)
    return key


async def _create_tester(storage: Storage) -> str:
    database = open_engine(storage)
    await migrate(database)
    await load_secrets(database)
    key = await AccountRepository(database).create_key("tester", plan="enterprise")
    await database.dispose()
    return key


@asynccontextmanager
async def _socket() -> AsyncIterator[str]:
    """Return the address of a Unix socket, whose path must be short."""
    with TemporaryDirectory(prefix="gateway-") as folder:
        yield f"unix:{folder}/services"


@asynccontextmanager
async def _reached(upstream: web.Application | str | None) -> AsyncIterator[str]:
    """Return the address of an upstream; one that does not listen yet is served."""
    if isinstance(upstream, str):
        yield upstream
        return
    async with serving(upstream or create_app(personalities=())) as url:
        yield url
