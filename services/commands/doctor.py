"""The command `gateway doctor`."""

from typing import Annotated

import typer

from services.commands.shared import FAILED, read_settings


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check the requirements of a gateway with these settings, and print advice for problems.

    The checks change nothing and cost nothing: providers are only asked for their list of models.
    The exit status is 1 if a check failed, and 0 if there are only warnings.
    """
    import asyncio
    import logging

    from services.doctor import findings
    from services.doctor.doctor import examine

    # No logs: the findings have the same information.
    logging.getLogger().addHandler(logging.NullHandler())
    results = asyncio.run(examine(read_settings()))
    typer.echo(findings.as_json(results) if as_json else findings.as_text(results))
    if findings.worst(results) == "failure":
        raise typer.Exit(FAILED)
