"""The `gateway` command.

Exit status: 0 for success; 1 for a failure, whose cause and remedy are on the last line of standard
error; 2 for a wrong command line or wrong settings.

Commands import modules when they run, so that `--help` responds at once.
"""

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from services.commands import (
    admin,
    articles,
    backup,
    console,
    doctor,
    envoy,
    files,
    import_settings,
    init,
    invitations,
    keys,
    limits,
    memory,
    model_groups,
    running,
    stored_providers,
    usage,
    users,
)
from services.commands.shared import FLAGS, WRONG, fail, print_table, read_settings
from services.common.version import VERSION

if TYPE_CHECKING:
    from services.common.settings import Model

app = typer.Typer(
    help="A self-hosted gateway in front of language-model providers.\n\n"
    "Settings come from gateway.toml and GATEWAY_… variables; "
    "`gateway config example` shows them all.",
    **FLAGS,
)
config = typer.Typer(help="Check or show settings.", **FLAGS)
app.add_typer(keys.app, name="keys")
app.add_typer(users.users, name="users")
app.add_typer(users.teams, name="teams")
app.add_typer(invitations.app, name="invitations")
app.add_typer(limits.app, name="limits")
app.add_typer(model_groups.app, name="model-groups")
app.add_typer(stored_providers.app, name="stored-providers")
app.add_typer(admin.app, name="admin-key")
app.add_typer(admin.audit, name="audit")
app.add_typer(files.app, name="files")
app.add_typer(memory.app, name="memory")
app.add_typer(articles.groups, name="groups")
app.add_typer(articles.grants, name="grants")
app.add_typer(articles.articles, name="articles")
app.add_typer(envoy.app, name="envoy")
app.add_typer(config, name="config")
app.add_typer(import_settings.app, name="import")
app.command("usage")(usage.usage)
app.command()(init.init)
app.command()(running.models)
app.command()(running.chat)
app.command()(running.reload)
app.command()(console.console)
app.command()(doctor.doctor)
app.command()(backup.backup)
app.command()(backup.restore)


def main() -> None:
    """Run the command line of this process."""
    app(prog_name="gateway")


def _print_version(is_asked_for: bool) -> None:
    if is_asked_for:
        typer.echo(f"gateway {VERSION}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


@app.command()
def up(
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=64,
            help="Number of worker processes.  [default: one per CPU core, at most 8]",
        ),
    ] = None,
) -> None:
    """Run the whole gateway on this machine until SIGTERM or Ctrl-C.

    Prints what it has read, and when it is ready, its address and an example request. SIGHUP
    reloads the settings.
    """
    from services.commands.startup_report import startup_report
    from services.common.settings import SANDBOX, effective_providers
    from services.supervisor.config import SupervisorConfig

    settings = read_settings()
    command = SupervisorConfig(
        host=settings.server.host,
        port=settings.server.port,
        metrics_host=settings.server.metrics_host,
        metrics_port=settings.server.metrics_port,
        data_dir=str(settings.storage.data_dir),
        drain_s=settings.server.drain_notice_s + settings.limits.drain_s,
        workers=workers or _default_workers(),
        grpc=settings.server.grpc,
        scheme="https" if settings.server.tls_certificate else "http",
        stall_s=settings.server.worker_stall_s,
        has_sandbox=SANDBOX in effective_providers(settings, os.environ),
    ).command()
    print(startup_report(settings), flush=True)
    os.execv(command[0], command)


def _default_workers() -> int:
    """Return the number of CPU cores that this process may use, at most 8."""
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1, 8)


@app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def serve(
    context: typer.Context,
    part: Annotated[str, typer.Argument(metavar="facade|services", show_default=False)] = "",
) -> None:
    """Run the facade or the gRPC services alone, on hosts of their own.

    `gateway serve services --help` and `gateway serve facade --help` list the options.
    """
    if part not in ("facade", "services"):
        is_asked_for = part == "--help"
        typer.echo(context.get_help(), err=not is_asked_for)
        raise typer.Exit(0 if is_asked_for else WRONG)
    os.execv(sys.executable, [sys.executable, "-P", "-m", part, *context.args])


@app.command()
def sandbox(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any free port.")
    ],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
) -> None:
    """Serve the sandbox models over HTTP, in OpenAI's, Anthropic's and Gemini's dialect.

    For tests and for trying clients: it costs nothing, needs no network and any API key will do,
    and its answers say that it is a sandbox.

    The addresses are http://127.0.0.1:PORT/v1 for clients of OpenAI, http://127.0.0.1:PORT for
    those of Anthropic, and http://127.0.0.1:PORT/v1beta for those of Gemini. Models such as
    fail-429, slow and cut show how a client deals with failures; a list is at /v1/models.
    """
    import asyncio

    from services.sandbox.server import create_app, serve

    try:
        asyncio.run(
            serve(create_app(), host, port, lambda url: typer.echo(f"The sandbox listens on {url}"))
        )
    except OSError as error:
        fail(f"{host}:{port}: {error.strerror}; choose another address with --port and --host")


@app.command()
def providers() -> None:
    """List the providers that this gateway knows, and the variables that each still needs."""
    from services.common.settings import effective_providers
    from services.common.settings.presets import PRESETS

    settings = read_settings()
    joined = effective_providers(settings, os.environ)
    rows: list[tuple[str, ...]] = [("NAME", "STATE", "ADDRESS")]
    for name in sorted({*PRESETS, *joined}):
        if name in joined:
            provider = joined[name]
            variable = provider.missing_key()
            state = f"needs {variable}" if variable else "joined"
            rows.append((name, state, provider.base_url or "-"))
        else:
            preset = PRESETS[name]
            address = preset.address(os.environ)
            missing = [] if preset.set_key_variable(os.environ) else [preset.joining_variable]
            missing += [preset.place_variable] if not address else []
            # Nothing is missing: the variables may be meant for clients of this gateway.
            state = (
                f"needs {' and '.join(missing)}"
                if missing
                else "not used: its address is a gateway"
            )
            if not settings.discovery.enabled:
                state = "off (discovery.enabled)"
            rows.append((name, state, address or "-"))
    print_table(rows)


@config.command("check")
def check() -> None:
    """Check the settings that a gateway started here, with this environment, would have."""
    from services.accounts.admin.admin_keys import configured_keys
    from services.accounts.limits.webhook import signing_key
    from services.common.settings import SANDBOX, SettingsError, effective_providers
    from services.inference.diagnostics import notes, problems, warnings

    settings = read_settings()
    for warning in warnings(settings, os.environ):
        typer.echo(f"gateway: warning: {warning}", err=True)
    for note in notes(settings):
        typer.echo(f"gateway: note: {note}", err=True)
    if found := problems(settings, os.environ):
        fail("\n".join(found), WRONG)
    try:
        configured_keys(settings.admin)
        signing_key(settings.budgets)
    except SettingsError as error:
        fail(str(error), WRONG)
    database = "PostgreSQL" if settings.storage.database_url else "SQLite"
    typer.echo(
        f"The settings are valid: {settings.server.host}:{settings.server.port}, {database}, data "
        f"in {settings.storage.data_dir}, configured providers: "
        f"{', '.join(settings.providers) or 'none'}, configured models: "
        f"{', '.join(map(_named, settings.models)) or 'none'}, sandbox: "
        f"{'present' if SANDBOX in effective_providers(settings, os.environ) else 'absent'}."
    )


def _named(model: "Model") -> str:
    """Return the name of a model, with the number of deployments if there are several."""
    count = len(model.served_by)
    return model.name if count == 1 else f"{model.name} ({count} deployments)"


@config.command("example")
def example() -> None:
    """Print a settings file that explains every key."""
    from services.common.settings_example import settings_example

    typer.echo(settings_example(), nl=False)
