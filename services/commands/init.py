"""The command `gateway init`."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from services.commands.shared import WRONG, fail

if TYPE_CHECKING:
    from services.common.settings import Provider

_FILE_VARIABLE = "GATEWAY_CONFIG"
_DEFAULT_FILE = "gateway.toml"


def init(
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="FILE",
            help="File to write.  [default: what GATEWAY_CONFIG names, or gateway.toml]",
            show_default=False,
        ),
    ] = None,
    provider: Annotated[
        list[str] | None,
        typer.Option(
            "--provider",
            metavar="NAME",
            help="Provider to add, as `gateway providers` lists it; repeatable.  [default: those "
            "whose key is set, and local servers that respond]",
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Port to listen on.")
    ] = None,
    sandbox: Annotated[
        bool | None,
        typer.Option(
            "--sandbox/--no-sandbox", help="Keep the sandbox's models beside those of providers."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a first settings file, with the providers that this machine can use.

    Finds keys of providers in the environment and local model servers, asks on a terminal which of
    them to add, and checks the file. Keys are not written into it, only the names of their
    variables.
    """
    import asyncio

    from services.config_files.starter import Choices, starter

    path = file or Path(os.environ.get(_FILE_VARIABLE) or _DEFAULT_FILE)
    check_target(path, force=force)
    asks = not yes and is_terminal()
    sections, remarks, local_models = _keyed(), {}, asyncio.run(_local_models())
    remarks = {name: f"The key is in {one['api_key_env']}." for name, one in sections.items()}
    for name, (server, listed) in local_models.items():
        sections[name] = {"kind": server.kind, "base_url": server.base_url}
        remarks[name] = f"A local server with {_count(listed)}."
    for name in provider or ():
        if name not in sections:
            sections[name], remarks[name] = _named(name), "Its key is not set yet."
    if provider:
        sections = {name: one for name, one in sections.items() if name in provider}
    elif asks:
        sections = {
            name: one
            for name, one in sections.items()
            if typer.confirm(f"Add {name}? {remarks[name]}", default=True)
        }
    if asks and port is None:
        port = typer.prompt("Port", default=8080, type=int)
    if asks and sandbox is None and sections:
        sandbox = typer.confirm("Keep the sandbox's models, such as sandbox/echo?", default=False)
    text = starter(
        Choices(
            sections,
            remarks,
            None if port == 8080 else port,
            has_sandbox=bool(sandbox),
            local_models=[
                f"{name}/{one}"
                for name, (_, listed) in local_models.items()
                if name in sections
                for one in listed[:1]
            ],
        )
    )
    write_checked(path, text)
    typer.echo(f"Wrote {path} with {_names(sections)}.")
    start = "gateway up" if str(path) == _DEFAULT_FILE else f"{_FILE_VARIABLE}={path} gateway up"
    typer.echo(f"Start the gateway with: {start}")


def is_terminal() -> bool:
    """Return whether somebody can answer questions."""
    return sys.stdin.isatty()


def check_target(path: Path, *, force: bool) -> None:
    """Exit with a message if a file would be overwritten without `force`."""
    if path.exists() and not force:
        fail(f"{path}: exists; choose another file, or overwrite it with --force", WRONG)


def write_checked(path: Path, text: str, *, is_private: bool = False) -> None:
    """Check the text of a settings file, write it, and print warnings about it.

    Exits with a message, and writes nothing, if the gateway would reject the file.

    Args:
        path: the file, which is replaced.
        text: its text.
        is_private: whether only the owner may read it, as it contains keys.
    """
    import tomllib

    from services.common.settings import SettingsError, parse
    from services.inference.diagnostics import problems, warnings

    try:
        settings = parse(tomllib.loads(text), str(path))
    except (SettingsError, tomllib.TOMLDecodeError) as error:
        fail(f"nothing was written, as the result would be invalid: {error}")
    draft = path.with_name(f"{path.name}.new")
    try:
        mode = 0o600 if is_private else 0o666
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(descriptor, "w", encoding="utf-8") as opened:
            opened.write(text)
        draft.replace(path)
    except OSError as error:
        fail(f"{path}: {error.strerror}")
    for line in [*problems(settings, os.environ), *warnings(settings, os.environ)]:
        typer.echo(f"gateway: warning: {line}", err=True)


def _keyed() -> dict[str, dict[str, Any]]:
    """Return sections of the providers whose key is in the environment."""
    from services.common.settings import Server, from_environment

    return {
        name: {
            "kind": provider.kind,
            "base_url": provider.base_url,
            "api_key_env": provider.api_key_env,
        }
        for name, provider in from_environment(os.environ, Server()).items()
    }


def _named(name: str) -> dict[str, Any]:
    """Return the section of a provider that is named without its key being set."""
    from services.common.settings.presets import PRESETS

    preset = PRESETS.get(name)
    if preset is None:
        fail(f"--provider {name}: unknown; one of {', '.join(PRESETS)}, or a local server", WRONG)
    url = preset.address(os.environ)
    if not url:
        fail(f"--provider {name}: set {preset.place_variable}, which its address needs", WRONG)
    section = {"kind": preset.kind, "base_url": url}
    return section | ({"api_key_env": preset.key_variable} if preset.key_variable else {})


async def _local_models() -> "Mapping[str, tuple[Provider, Sequence[str]]]":
    """Return the local servers that respond, with the names of their models."""
    from services.common import http
    from services.common.settings import Limits, Server
    from services.common.settings.local_servers import local_servers
    from services.inference.models import discovery

    servers = local_servers(Server())
    async with http.Client(Limits().connect_timeout_s) as client:
        learnt = await discovery.learn(client, servers)
    return {name: (servers[name], listed) for name, listed in learnt.items()}


def _count(names: Sequence[str]) -> str:
    return f"{len(names)} model{'' if len(names) == 1 else 's'}"


def _names(sections: Mapping[str, object]) -> str:
    return f"the providers {', '.join(sections)}" if sections else "no provider, for the sandbox"
