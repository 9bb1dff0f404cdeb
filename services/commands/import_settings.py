"""`gateway import`: translate the settings of other gateways."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from services.commands.shared import FLAGS, WRONG, fail

app = typer.Typer(help="Make a settings file from that of another gateway.", **FLAGS)
_MAX_BYTES = 4 << 20
_MAX_INCLUDED = 64


@app.callback()
def group() -> None:
    """Make a settings file from that of another gateway."""


@app.command("litellm")
def litellm(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="A config.yaml of LiteLLM's proxy.")
    ],
    file: Annotated[
        Path, typer.Option("--file", metavar="FILE", help="File to write; - prints it instead.")
    ] = Path("gateway.toml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Translate a config.yaml of LiteLLM: models, keys, fallbacks, timeouts, cache, balancing.

    What has no counterpart, needs no setting or remains to be done (such as budgets, which are set
    by `gateway limits set`) is listed on standard error and in comments of the file. Files that it
    includes are read too. Variables with keys (os.environ/NAME) stay variables; those with
    addresses and names of models are replaced by their values.
    """
    from services.commands.init import check_target, write_checked
    from services.config_files.litellm import translate

    is_printed = str(file) == "-"
    if not is_printed:
        check_target(file, force=force)
    try:
        translation = translate(_with_included(config), os.environ)
    except ValueError as error:
        fail(f"{config}: {error}", WRONG)
    text = translation.text(config.name)
    if is_printed:
        typer.echo(text, nl=False)
    else:
        write_checked(file, text, is_private=translation.has_keys)
    for title, lines in translation.lists:
        typer.echo(f"{title}:", err=True)
        for line in lines:
            typer.echo(f"- {line}", err=True)
    if not is_printed:
        content = translation.content
        typer.echo(
            f"Wrote {file}: {len(content.get('providers', ()))} providers, "
            f"{len(content.get('models', ()))} models."
        )


def _with_included(config: Path) -> dict[str, Any]:
    """Return the parsed YAML of a file, with the files that it includes.

    As in LiteLLM, lists of an included file are appended, and its other values replace those of the
    file itself.
    """
    content = _load(config)
    included = content.pop("include", None) or []
    if not isinstance(included, list) or not all(isinstance(name, str) for name in included):
        fail(f"{config}: include: must be a list of files", WRONG)
    if len(included) > _MAX_INCLUDED:
        fail(f"{config}: include: lists more than {_MAX_INCLUDED} files", WRONG)
    for name in included:
        for key, value in _load(config.parent / name).items():
            if isinstance(value, list) and isinstance(content.get(key), list):
                content[key] = [*content[key], *value]
            else:
                content[key] = value
    return content


def _load(config: Path) -> dict[str, Any]:
    """Return the parsed YAML of a file, which must be a mapping."""
    # Its types are a package of their own, which nothing else here would use.
    import yaml  # type: ignore[import-untyped]  # it brings no types

    try:
        with config.open("rb") as opened:
            text = opened.read(_MAX_BYTES + 1)
    except OSError as error:
        fail(f"{config}: {error.strerror}", WRONG)
    if len(text) > _MAX_BYTES:
        fail(f"{config}: is larger than {_MAX_BYTES >> 20} MiB", WRONG)
    try:
        # The safe loader creates no objects other than those of JSON, and dates.
        content = yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        fail(f"{config}: not YAML: {error}".partition("\n")[0], WRONG)
    if not isinstance(content, dict):
        fail(f"{config}: must be a mapping, as a config.yaml of LiteLLM's proxy is", WRONG)
    return content
