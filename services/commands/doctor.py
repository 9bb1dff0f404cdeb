"""The command `gateway doctor`."""

from typing import Annotated

import typer

from services.commands.shared import FAILED, read_settings


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check what a gateway with these settings needs, and say what to do about the rest.

    Nothing is changed or spent: of providers only the list of models is asked for. The exit
    status is 1 if a check failed; warnings leave it at 0.
    """
    import asyncio
    import logging

    from services.doctor import findings
    from services.doctor.doctor import examine

    # What a log line would say, a finding says.
    logging.getLogger().addHandler(logging.NullHandler())
    found = asyncio.run(examine(read_settings()))
    typer.echo(findings.as_json(found) if as_json else findings.as_text(found))
    if findings.worst(found) == "failure":
        raise typer.Exit(FAILED)
