"""The command `gateway console`."""

from typing import TYPE_CHECKING

import typer

from services.commands.shared import fail, on_database

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from services.common.settings import Settings


def console() -> None:
    """Print a link that signs in to the console of the gateway that runs here.

    The link works once, within 10 minutes. It requires a gateway with a development key; with other
    gateways, sign in to the console with an API key.
    """
    typer.echo(on_database(_link))
    typer.echo("The link works once, within 10 minutes.", err=True)


async def _link(engine: "AsyncEngine", settings: "Settings") -> str:
    import time

    from services.accounts.development import find_development_key
    from services.accounts.repository import AccountRepository
    from services.common.storage import sign_in_codes
    from services.supervisor.greeting import base_url, sign_in_link
    from services.supervisor.resources import lock_holder

    server, data_dir = settings.server, str(settings.storage.data_dir)
    if not server.port:
        fail("server.port is 0, so the gateway's port is not known; set server.port")
    url = base_url(server.host, server.port, "https" if server.tls_certificate else "http")
    if await find_development_key(AccountRepository(engine), settings) is None:
        fail(f"no development key exists; sign in at {url}/console with an API key")
    if not lock_holder(data_dir):
        fail(f"no gateway runs on {data_dir}; start one with `gateway up`, which prints a link")
    try:
        return sign_in_link(url, sign_in_codes.issue(data_dir, time.time()))
    except OSError as error:
        fail(f"{data_dir}: {error.strerror}")
