"""A real OpenID Connect issuer, of the npm package oidc-provider, and a gateway that knows it."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import aiohttp

from tests.gateway_in_process import Gateway, running_gateway

_SCRIPT = Path("tests/clients/issuer.mjs")
AUDIENCE = "https://gateway.example.com"


@asynccontextmanager
async def running_issuer(redirect_uri: str, accounts: Mapping[str, Any]) -> AsyncIterator[str]:
    """Run an issuer whose accounts have these claims; yield its address."""
    about = {"redirectUri": redirect_uri, "audience": AUDIENCE, "accounts": accounts}
    process = await asyncio.create_subprocess_exec(
        *("node", str(_SCRIPT), json.dumps(about)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        address = (await process.stdout.readline()).decode().strip()
        assert address, "the issuer did not start: run make sdks"
        yield address
    finally:
        process.stdin.close()
        await process.wait()


@asynccontextmanager
async def gateway_with_issuer(
    folder: Path, accounts: Mapping[str, Any], oidc: Mapping[str, Any], **sections: Any
) -> AsyncIterator[tuple[Gateway, str]]:
    """Run a gateway whose people sign in at an issuer; yield it and the issuer's address."""
    # Held, so that the redirect URI is known before the gateway listens there.
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        async with running_issuer(f"{url}/console/oidc/callback", accounts) as issuer:
            settings = {
                "issuer": issuer,
                "name": "Example ID",
                "client_id": "gateway",
                "client_secret": "secret of the gateway",
                **oidc,
            }
            console = {"public_url": url, "oidc": settings}
            async with running_gateway(folder, port=port, console=console, **sections) as gateway:
                yield gateway, issuer


async def token_of(http: aiohttp.ClientSession, issuer: str, client: str) -> str:
    """Return an access token of a client of the issuer, a JWT for `AUDIENCE`."""
    address = f"{issuer}/token"
    form = {"grant_type": "client_credentials"}
    # The issuer encodes secrets in `Authorization` as forms do.
    headers = {"Authorization": aiohttp.encode_basic_auth(client, "secret+of+a+robot")}
    async with http.post(address, data=form, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        return str((await answer.json())["access_token"])


async def signed_in_address(http: aiohttp.ClientSession, address: str, account: str) -> str:
    """Sign in at the issuer as an account, as a browser does; return where it sends the browser.

    Args:
        http: a client with cookies of its own.
        address: the address to which the gateway has sent the browser.
        account: name of the account.
    """
    forms = iter(({"prompt": "login", "login": account, "password": "any"}, {"prompt": "consent"}))
    form: dict[str, str] | None = None
    while True:
        method = "GET" if form is None else "POST"
        async with http.request(method, address, data=form, allow_redirects=False) as answer:
            form = None
            if answer.status in (302, 303):
                address = urljoin(address, answer.headers["location"])
                if "/console/oidc/callback" in address:
                    return address
                continue
            assert answer.status == 200, await answer.text()
            assert "/interaction/" in address
            form = next(forms)
