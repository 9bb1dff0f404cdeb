"""`gateway envoy`: configure and run an Envoy in front of the gateway."""

import os
import socket
from typing import Annotated

import typer

from services.commands.shared import FLAGS, WRONG, fail, read_settings

app = typer.Typer(
    help="Show the configuration of the Envoy in front of the gateway, or run it.", **FLAGS
)

_Port = Annotated[
    int | None,
    typer.Option("--port", min=0, max=65535, help="Overrides envoy.port; 0: any free port."),
]
_AdminPort = Annotated[
    int | None,
    typer.Option(
        "--admin-port", min=0, max=65535, help="Overrides envoy.admin_port; 0: any free port."
    ),
]


@app.command("config")
def show_config() -> None:
    """Print an Envoy configuration that is generated from the settings.

    The output is YAML, for a file envoy.yaml. It contains paths of key files, but no keys.
    """
    from services.common.settings import SettingsError
    from services.envoy.bootstrap import bootstrap

    try:
        typer.echo(bootstrap(read_settings()), nl=False)
    except SettingsError as error:
        fail(str(error), WRONG)


@app.command()
def run(
    port: _Port = None,
    admin_port: _AdminPort = None,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, help="Number of Envoy's worker threads.  [default: one per CPU core]"),
    ] = None,
) -> None:
    """Run an Envoy with the generated configuration until SIGTERM or Ctrl-C.

    Prints the address when a gateway behind it is healthy. On SIGTERM it stops listening, and
    running requests may take limits.drain_s to finish.
    """
    import asyncio

    from services.common.settings import SettingsError
    from services.envoy.process import EnvoyError, run_envoy

    settings = read_settings()
    envoy = settings.envoy
    chosen = {
        "port": free_port(envoy.port if port is None else port, envoy.host),
        "admin_port": free_port(
            envoy.admin_port if admin_port is None else admin_port, "127.0.0.1"
        ),
    }
    settings = settings.model_copy(update={"envoy": envoy.model_copy(update=chosen)})
    scheme = "https" if envoy.certificate else "http"
    line = f"envoy listens on {scheme}://{envoy.host}:{chosen['port']}"
    threads = concurrency or os.cpu_count() or 1
    try:
        status = asyncio.run(run_envoy(settings, threads, lambda: print(line, flush=True)))
    except SettingsError as error:
        fail(str(error), WRONG)
    except EnvoyError as error:
        fail(str(error))
    if status:
        fail(f"envoy ended with status {status}; see its output above")


def free_port(port: int, host: str) -> int:
    """Return the port; for 0, an unused one."""
    if port:
        return port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        unused_port: int = probe.getsockname()[1]
        return unused_port
