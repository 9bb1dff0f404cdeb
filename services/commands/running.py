"""Commands that call a running gateway: its models, a chat, and the reload of its settings."""

import json
from typing import Annotated, Any

import typer

from services.commands.shared import fail, print_table, read_settings


def models() -> None:
    """List the models of the running gateway, by the names that requests use.

    The gateway is the one that runs here with its development key, or the one that GATEWAY_URL and
    GATEWAY_KEY name.
    """
    from services.commands.gateway_client import address, request

    with request(address(read_settings()), "GET", "/v1/models") as response:
        listed = json.load(response)["data"]
    rows: list[tuple[str, ...]] = [("NAME", "PROVIDER", "CONTEXT", "READS", "$/M IN", "$/M OUT")]
    rows += [_row(model) for model in listed]
    print_table(rows)
    if not listed:
        typer.echo("There are no models; `gateway providers` lists what is missing.", err=True)


def _row(model: dict[str, Any]) -> tuple[str, ...]:
    prices = model.get("pricing") or {}
    return (
        model["id"],
        model["owned_by"],
        str(model.get("max_input_tokens") or "-"),
        ",".join(model["capabilities"]["inputs"]),
        str(prices.get("input", "-")),
        str(prices.get("output", "-")),
    )


def chat(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Name of a model.")],
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="What to say; - reads standard input.")
    ] = "-",
    system: Annotated[
        str, typer.Option("--system", metavar="TEXT", help="Instructions for the model.")
    ] = "",
) -> None:
    """Ask a model of the running gateway, and print its answer as it arrives.

    The gateway is the one that runs here with its development key, or the one that GATEWAY_URL and
    GATEWAY_KEY name.
    """
    import sys

    from services.commands.gateway_client import address, request

    gateway = address(read_settings())
    if text == "-":
        text = sys.stdin.read()
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": text})
    body = {"model": model, "messages": messages, "stream": True}
    with request(gateway, "POST", "/v1/chat/completions", body) as response:
        is_complete = False
        for line in response:
            data = line.removeprefix(b"data:").strip()
            if data == b"[DONE]":
                is_complete = True
            elif data and line.startswith(b"data:"):
                typer.echo(_content(data), nl=False)
                sys.stdout.flush()
    typer.echo()
    if not is_complete:
        fail("the answer broke off")


def _content(data: bytes) -> str:
    """Return the text in an event of a streamed chat completion; exit if it is an error."""
    from services.commands.gateway_client import error_message

    if message := error_message(data):
        typer.echo()
        fail(message)
    match json.loads(data):
        case {"choices": [{"delta": {"content": str(content)}}, *_]}:
            return content
    return ""


def reload() -> None:
    """Reload the settings of the running gateway: providers and their keys, models and roles.

    The settings are checked first; a gateway keeps the ones that it has if they are wrong. Other
    settings change with the next start.
    """
    import os
    import signal

    from services.commands.gateway_client import find_gateway
    from services.common.text.texts import parse_digits

    running = find_gateway(read_settings())
    process = parse_digits(running.process)
    if process is None:
        fail(f"{running.data_dir}: the lock file does not contain the id of the gateway's process")
    try:
        os.kill(process, signal.SIGHUP)
    except OSError as error:
        fail(f"process {process}: {error.strerror}")
    typer.echo(f"The gateway (process {process}) reloads its settings; its log has the result.")
