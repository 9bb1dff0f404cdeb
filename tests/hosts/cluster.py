"""Hosts behind a real Envoy, over one PostgreSQL and one bucket.

A host is a gateway with processes and a data folder of its own. The first connects to PostgreSQL
itself, the others through a PgBouncer each, where this machine has them.
"""

import asyncio
import hashlib
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import aiohttp

from tests.bench import processes
from tests.databases import PostgreSQL, postgresql_server
from tests.e2e.gateway import envoy_alone
from tests.e2e.processes import Running, command, free_port
from tests.e2e.users import User
from tests.poolers import Pooler, kinds_installed, pooler
from tests.services.files.running_file_store import Bucket

HOSTS = 3
ADMIN_KEY = "gwadmin-" + "a" * 43
_SETTINGS = """\
[discovery]
enabled = false

[envoy]
facades = [{facades}]
admin_api = true

[admin]
key_sha256 = "{admin_key}"

[storage]
blob_url = "s3://{bucket}"

[batches]
lease_s = 2
"""


@dataclass
class Host:
    """A host, and what its gateway is started with."""

    port: int
    folder: Path
    environ: Mapping[str, str]
    process: Running = field(init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def launch(self) -> None:
        """Start the gateway; it does not answer yet."""
        arguments = [command("gateway"), "up", "--workers", "1"]
        self.process = Running(arguments, environ=self.environ, folder=self.folder, is_forked=True)

    def wait(self) -> None:
        """Wait until the gateway answers."""
        self.process.wait_for("The gateway listens on")

    def kill(self) -> None:
        """Kill every process of the gateway as `kill -9` does."""
        # A worker ends by itself once the supervisor, which comes first, is gone.
        self._signal(signal.SIGKILL)
        self.process.stop()

    def pause(self) -> None:
        """Stop every process of the gateway where it is, as a machine does that hangs."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume the paused processes of the gateway."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        for pid in processes.family(self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def worker_pids(self) -> Sequence[int]:
        """Return the ids of the processes that serve."""
        return processes.running_module(processes.family(self.process.pid), "services.worker")


@dataclass
class Cluster:
    """Hosts, what they share, and the Envoy in front of them."""

    hosts: list[Host]
    url: str
    database: PostgreSQL
    bucket: Bucket
    envoy_admin: str
    poolers: list[Pooler]

    async def are_healthy(self, http: aiohttp.ClientSession, count: int) -> bool:
        """Return whether Envoy sends requests to so many hosts."""
        name = "cluster.facades.membership_healthy"
        async with http.get(f"{self.envoy_admin}/stats?filter=^{name}$") as answer:
            return (await answer.text()).strip() == f"{name}: {count}"

    def restart(self, host: Host) -> None:
        """Start the gateway of a host that has ended again, and wait until it answers."""
        host.launch()
        host.wait()

    @property
    def output(self) -> str:
        """All that the gateways have logged since they were started."""
        return "".join(host.process.output for host in self.hosts)


@dataclass(frozen=True)
class Administrator:
    """Whoever has the admin key, at a host or behind Envoy."""

    http: aiohttp.ClientSession
    url: str

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """Return the body of an answer, which must be well."""
        async with self.http.request(
            method,
            f"{self.url}/admin/v1/{path}",
            json=body,
            headers={"Authorization": f"Bearer {ADMIN_KEY}"},
        ) as answer:
            content = await answer.json()
            assert answer.status == 200, content
            return content

    async def key(self, user: str, **limits: int) -> str:
        """Return a new key of a user, with these limits."""
        if not (await self.call("GET", f"users?name={user}"))["data"]:
            await self.call("POST", "users", {"name": user, "plan": "enterprise"})
        made = await self.call("POST", "keys", {"user": user})
        if limits:
            await self.call("PUT", f"keys/{made['id']}/limits", limits)
        key: str = made["key"]
        return key

    async def user(self, name: str, **limits: int) -> User:
        """Return a new user, who goes where this administrator goes."""
        return User(self.http, self.url, await self.key(name, **limits))


@contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    """Run three hosts with their database, bucket and Envoy."""
    bucket = Bucket()
    with ExitStack() as stack:
        stack.callback(bucket.stop)
        database = stack.enter_context(postgresql_server())
        poolers = [
            stack.enter_context(
                pooler(database, keeps_statements=one, settings="server_login_retry = 1")
            )
            for one in kinds_installed()
        ]
        urls = [database.url, *(one.gateway_url for one in poolers)]
        ports = [free_port() for _ in range(HOSTS)]
        config = folder / "gateway.toml"
        config.write_text(
            _SETTINGS.format(
                facades=", ".join(f'"127.0.0.1:{port}"' for port in ports),
                admin_key=hashlib.sha256(ADMIN_KEY.encode()).hexdigest(),
                bucket=bucket.name,
            )
        )
        common = {
            **bucket.environment(),
            "GATEWAY_CONFIG": str(config),
            "GATEWAY_METRICS_PORT": "0",
            "GATEWAY_HOST": "127.0.0.1",
            "GATEWAY_GRPC": "",
        }
        hosts = []
        for port, database_url in zip(ports, cycle(urls), strict=False):
            own = {
                "GATEWAY_PORT": str(port),
                "GATEWAY_DATA_DIR": str(folder / f"{port}"),
                "GATEWAY_DATABASE_URL": database_url,
            }
            host = Host(port, folder, common | own)
            # They migrate the empty database at once.
            host.launch()
            stack.callback(lambda host=host: host.kill())
            hosts.append(host)
        admin_port = free_port()
        envoy = stack.enter_context(envoy_alone(hosts[0].environ, admin_port=admin_port))
        for host in hosts:
            host.wait()
        url = envoy.wait_for(r"envoy listens on (\S+)")[1]
        yield Cluster(hosts, url, database, bucket, f"http://127.0.0.1:{admin_port}", poolers)


async def start_again(cluster: Cluster, host: Host) -> None:
    """Start a killed host, beside calls that go on."""
    await asyncio.to_thread(cluster.restart, host)
