"""Names that resolve to a public address when they are checked, and to this machine afterwards.

The gateway runs in the test's process, over an internet whose names the test resolves.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.gateway_in_process import Gateway, running_gateway
from tests.services.media.fetching.internet import PUBLIC, Internet, internet, redirect, say

SECRET = b"the secret of a private server"
PRIVATE = ("127.0.0.1", "10.0.0.7", "169.254.169.254", "::1", "fd00::1", "::ffff:127.0.0.1")
URL = "http://rebound.test/picture.png"
CHAT_PART = {"type": "image_url", "image_url": {"url": URL}}
MESSAGE_PART = {"type": "image", "source": {"type": "url", "url": URL}}
RESPONSE_PART = {"type": "input_image", "image_url": URL}
WEB_FETCH = {"type": "web_fetch_20250910", "name": "web_fetch"}


def user(*content: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(content)}]


# Every way in which a caller has the gateway fetch an address, all to a model that sees nothing.
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/beta/v1/chat/completions", {"messages": user(CHAT_PART)}),
    "messages": ("/beta/v1/messages", {"messages": user(MESSAGE_PART), "max_tokens": 99}),
    "responses": ("/beta/v1/responses", {"input": user(RESPONSE_PART)}),
    "web_fetch": (
        "/beta/v1/messages",
        {
            "messages": user({"type": "text", "text": f"Please call web_fetch on {URL} now."}),
            "tools": [WEB_FETCH],
            "max_tokens": 99,
        },
    ),
}


@pytest.fixture
async def net() -> AsyncIterator[Internet]:
    async with internet() as one:
        one.forbidden.plays(say(SECRET, "content-type: text/plain"))
        yield one


@pytest.fixture
async def gateway(net: Internet, tmp_path: Path) -> AsyncIterator[Gateway]:
    blind = {"name": "blind", "provider": "sandbox", "upstream": "echo", "inputs": ["text"]}
    fetcher = patch(
        "services.inference.assembly.Fetcher", lambda limits, resolve: net.fetcher(limits=limits)
    )
    with fetcher:
        async with running_gateway(tmp_path, models=[blind]) as one:
            yield one


async def ask(gateway: Gateway, way: str) -> bytes:
    """Ask for the address in one way; return the answer."""
    path, body = REQUESTS[way]
    headers = gateway.api_key() if "messages" in path else gateway.bearer()
    async with gateway.http.post(
        gateway.url + path, json={"model": "blind", **body}, headers=headers
    ) as answer:
        content = await answer.read()
        assert answer.status != 500, content
        return content


@pytest.mark.parametrize("private", PRIVATE)
@pytest.mark.parametrize("way", REQUESTS)
async def test_a_rebound_name_leads_to_no_private_address(
    gateway: Gateway, net: Internet, way: str, private: str
) -> None:
    net.names["rebound.test"] = [[PUBLIC], [private]]
    for _ in range(2):  # by its public address, and by the private one
        assert SECRET not in await ask(gateway, way)
    assert net.lookups, "nothing was fetched"
    assert {address for address, _ in net.dialled} <= {PUBLIC}


@pytest.mark.parametrize("way", REQUESTS)
async def test_a_redirect_to_a_name_rebound_meanwhile_is_refused(
    gateway: Gateway, net: Internet, way: str
) -> None:
    net.names["rebound.test"] = [[PUBLIC], ["127.0.0.1"]]
    net.public.plays(redirect(URL))
    assert SECRET not in await ask(gateway, way)
    assert len(net.lookups) == 2
    assert net.dialled == [(PUBLIC, 80)]
