"""The real thing: `gateway up`, its sandbox upstream, and Envoy in front, as processes."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.processes import PYTHON, ROOT, Running, command, free_port

_ADDRESS = r"https?://127\.0\.0\.1:(\d+)"
# What could make a gateway under test reach for somebody else's server or file.
_UNSET = (
    *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "GATEWAY_DATABASE_URL",
)

_SETTINGS = """\
[discovery]
enabled = false

[sandbox]
enabled = true

[providers.openai]
kind = "openai"
base_url = "{openai}"
api_key = "upstream-key"

[providers.anthropic]
kind = "anthropic"
base_url = "{anthropic}"
api_key = "upstream-key"

[providers.gemini]
kind = "gemini"
base_url = "{gemini}"
api_key = "upstream-key"
"""


@dataclass(frozen=True, slots=True)
class Gateway:
    """A gateway that answers.

    Attributes:
        port: where callers go, on the loopback address.
        metrics_port: where whoever runs it goes.
        key: an API key; "" with a database that is not the gateway's own.
        process: the one that stops everything when it is stopped.
        data_dir: its data folder.
        services_port: where gRPC callers go, past Envoy; 0 where there is no such port.
        services: the process of the services, where they are apart.
    """

    port: int
    metrics_port: int
    key: str
    process: Running
    data_dir: Path = Path()
    services_port: int = 0
    services: Running | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def metrics_url(self) -> str:
        return f"http://127.0.0.1:{self.metrics_port}"


@contextmanager
def sandbox_upstream(cpus: Sequence[int] = (), account: Path | None = None) -> Iterator[int]:
    """Run the upstream as a process; give its port.

    It writes the file of a service account of Google to `account`.
    """
    port = free_port()
    arguments = [PYTHON, "-m", "tests.upstream", "--port", str(port)]
    arguments += [] if account is None else ["--account", str(account)]
    with Running(arguments, cpus=cpus) as process:
        process.wait_for(_ADDRESS)
        yield port


@contextmanager
def gateway(
    folder: Path,
    upstream_port: int,
    *,
    workers: int = 1,
    cpus: Sequence[int] = (),
    settings: str = "",
    grpc: str = "",
    is_forked: bool = True,
) -> Iterator[Gateway]:
    """Run `gateway up` with its data in `folder`, in front of the upstream on a port.

    `settings` is TOML that follows the settings of the three providers, `grpc` the address of
    gRPC callers. Where memory is measured, `is_forked` is to be False.
    """
    environ = _environ(folder, upstream_port, 0, settings, grpc)
    arguments = [command("gateway"), "up", "--workers", str(workers)]
    with Running(
        arguments, environ=environ, folder=folder, cpus=cpus, is_forked=is_forked
    ) as process:
        port = int(process.wait_for(f"listens on {_ADDRESS}")[1])
        metrics_port = int(process.wait_for(f"Metrics are on {_ADDRESS}")[1])
        services_port = int(process.wait_for(r"gRPC callers go to .*:(\d+)")[1]) if grpc else 0
        yield Gateway(port, metrics_port, _key(folder), process, folder / "var", services_port)


@contextmanager
def gateway_apart(folder: Path, upstream_port: int, *, settings: str = "") -> Iterator[Gateway]:
    """Run `gateway serve services` and `gateway serve facade`, which talk over gRPC.

    What stops everything is the facade; the services are `services_port`. `settings` is TOML, as
    of `gateway`.
    """
    port, services_port = free_port(), free_port()
    environ = _environ(folder, upstream_port, port, settings)
    address = f"127.0.0.1:{services_port}"
    create = [command("gateway"), "keys", "create", "--user", "dev", "--plan", "enterprise"]
    with Running(create, environ=environ, folder=folder, is_forked=True) as created:
        key = created.wait_for(r"^(gw-\S+)$")[1]
    serve = [command("gateway"), "serve"]
    listening = [*serve, "services", "--listen", address]
    with Running(listening, environ=environ, folder=folder, is_forked=True) as services:
        services.wait_for("READY")
        calling = [*serve, "facade", "--services", address]
        with Running(calling, environ=environ, folder=folder, is_forked=True) as facade:
            facade.wait_for("READY")
            data_dir = folder / "var"
            yield Gateway(port, 0, key, facade, data_dir, services_port, services)


@contextmanager
def gateway_behind_envoy(
    folder: Path, upstream_port: int, *, workers: int = 1, settings: str = ""
) -> Iterator[Gateway]:
    """Run `envoy/run.py`, which starts a gateway and Envoy in front of it.

    What a process bounds is measured on one worker. `settings` is TOML, as of `gateway`.
    """
    environ = _environ(folder, upstream_port, free_port(), settings)
    services_port = free_port()
    script = [PYTHON, str(ROOT / "envoy" / "run.py"), *_of_envoy(free_port())]
    arguments = [*script, "--grpc-port", str(services_port), "--"]
    arguments += ["--workers", str(workers)]
    with Running(arguments, environ=environ, folder=folder) as process:
        metrics_port = int(process.wait_for(f"Metrics are on {_ADDRESS}")[1])
        port = int(process.wait_for(f"envoy listens on {_ADDRESS}")[1])
        data_dir = folder / "var"
        yield Gateway(port, metrics_port, _key(folder), process, data_dir, services_port)


@contextmanager
def envoy_before(facade_port: int) -> Iterator[Gateway]:
    """Run Envoy alone, in front of whatever listens on a port; there is no key."""
    environ = {"GATEWAY_CONFIG": "", "GATEWAY_PORT": str(facade_port), "GATEWAY_GRPC": ""}
    with envoy_alone(environ) as process:
        port = int(process.wait_for(f"envoy listens on {_ADDRESS}")[1])
        yield Gateway(port, 0, "", process)


def envoy_alone(environ: Mapping[str, str], port: int = 0, admin_port: int = 0) -> Running:
    """Return `gateway envoy run` on a port, with the settings that an environment names."""
    options = _of_envoy(port or free_port(), admin_port)
    return Running([command("gateway"), "envoy", "run", *options], environ=environ)


def _of_envoy(port: int, admin_port: int = 0) -> Sequence[str]:
    """Return the options of an Envoy on a port, whose ports nobody else is given meanwhile."""
    admin = str(admin_port or free_port())
    return ("--port", str(port), "--admin-port", admin, "--concurrency", "1")


def _environ(
    folder: Path, upstream_port: int, port: int, settings: str = "", grpc: str = ""
) -> Mapping[str, str]:
    upstream = f"http://127.0.0.1:{upstream_port}"
    providers = _SETTINGS.format(
        openai=f"{upstream}/v1", anthropic=upstream, gemini=f"{upstream}/v1beta"
    )
    (folder / "gateway.toml").write_text(providers + without_notice(settings))
    return environ_of(folder, port, grpc)


def without_notice(settings: str) -> str:
    """Return settings with which a gateway that is stopped does not wait for load balancers."""
    if "drain_notice_s" in settings:
        return settings
    own, _, of_server = settings.partition("[server]\n")
    return f"{own}\n[server]\ndrain_notice_s = 0\n{of_server}"


def environ_of(folder: Path, port: int = 0, grpc: str = "") -> Mapping[str, str]:
    """Return the environment of a gateway whose settings and data are in `folder`."""
    return {
        **dict.fromkeys(_UNSET, ""),
        "GATEWAY_CONFIG": str(folder / "gateway.toml"),
        "GATEWAY_DATA_DIR": str(folder / "var"),
        "GATEWAY_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "GATEWAY_METRICS_PORT": "0",
        "GATEWAY_GRPC": grpc,
        "PATH": f"{Path(PYTHON).parent}{os.pathsep}{os.environ.get('PATH', '')}",
    }


def _key(folder: Path) -> str:
    file = folder / "var" / "dev.key"
    return file.read_text().strip() if file.exists() else ""
