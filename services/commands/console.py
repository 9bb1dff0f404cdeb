"""The command `gateway console`."""

from functools import partial
from typing import TYPE_CHECKING

import typer

from services.commands.shared import fail, on_database, read_settings

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from services.common.settings import Settings
    from services.supervisor.running import RunningGateway


def console() -> None:
    """Print a link that signs in to the console of the gateway that runs here.

    The link works once, within 10 minutes. It requires a gateway with a development key; with other
    gateways, sign in to the console with an API key. If no gateway runs on the data folder of the
    settings, the only one that this user runs elsewhere is used.
    """
    import os

    from services.commands.gateway_client import find_gateway

    settings = read_settings()
    running = find_gateway(settings)
    if running.data_dir != str(settings.storage.data_dir):
        os.environ["GATEWAY_DATA_DIR"] = running.data_dir
    typer.echo(on_database(partial(_link, running)))
    typer.echo("The link works once, within 10 minutes.", err=True)


async def _link(running: "RunningGateway", engine: "AsyncEngine", settings: "Settings") -> str:
    import time

    from services.accounts.development import find_development_key
    from services.accounts.repository import AccountRepository
    from services.common.storage import sign_in_codes
    from services.supervisor.greeting import sign_in_link

    if not running.url:
        fail(f"the gateway on {running.data_dir} is still starting; try again")
    if await find_development_key(AccountRepository(engine), settings) is None:
        fail(f"no development key exists; sign in at {running.url}/console with an API key")
    try:
        return sign_in_link(running.url, sign_in_codes.issue(running.data_dir, time.time()))
    except OSError as error:
        fail(f"{running.data_dir}: {error.strerror}")
