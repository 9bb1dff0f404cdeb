"""Servers with TLS, and proxies before servers."""

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import trustme

from services.common import http
from tests.services.common.http.servers import ask, serving


@dataclass(frozen=True)
class Tls:
    """Two ends of TLS that trust each other, for servers on this machine."""

    serving: ssl.SSLContext
    trusting: ssl.SSLContext


@pytest.fixture(scope="module")
def tls() -> Tls:
    authority = trustme.CA()
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "models.test").configure_cert(serving)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    return Tls(serving, trusting)


async def name_targets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each request with its target."""
    while head := await reader.readuntil(b"\r\n\r\n"):
        target = head.split()[1]
        writer.write(b"HTTP/1.1 200 S\r\ncontent-length: %d\r\n\r\n" % len(target) + target)


async def test_tls_connections_are_reused(tls: Tls) -> None:
    async with (
        serving(name_targets, tls.serving) as port,
        http.Client(60, http.Proxies({}), tls.trusting, settle_s=0) as client,
    ):
        for target in ("/a", "/b"):
            assert await ask(client, f"https://127.0.0.1:{port}{target}", b"") == (
                200,
                target.encode(),
            )


async def test_a_server_that_cannot_prove_who_it_is_is_not_asked(tls: Tls) -> None:
    async with (
        serving(name_targets, tls.serving) as port,
        http.Client(60, http.Proxies({})) as client,
    ):
        with pytest.raises(http.ConnectionBrokenError):
            await ask(client, f"https://127.0.0.1:{port}/")


class ProxyServer:
    """A proxy that lets everything through, or nothing.

    Attributes:
        heads: what it was asked, first lines and all.
        port: where it listens.
        refuses: whether it lets nothing through.
    """

    def __init__(self, target_port: int) -> None:
        self.heads: list[str] = []
        self.port = 0
        self.refuses = False
        self._target_port = target_port

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head.decode().lower())
        if self.refuses:
            writer.write(b"HTTP/1.1 407 S\r\ncontent-length: 0\r\n\r\n")
            return
        if not head.startswith(b"CONNECT"):
            writer.write(b"HTTP/1.1 200 S\r\ncontent-length: 3\r\n\r\nvia")
            await reader.read()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
    writer.close()


@asynccontextmanager
async def proxy_server(target_port: int = 0) -> AsyncIterator[ProxyServer]:
    proxy = ProxyServer(target_port)
    async with serving(proxy.serve) as proxy.port:
        yield proxy


async def test_a_proxy_gets_absolute_urls_and_credentials() -> None:
    async with proxy_server() as proxy:
        addresses = {"http": f"http://ada:se%20cret@127.0.0.1:{proxy.port}"}
        proxies = http.Proxies(addresses, lambda host: False)
        async with http.Client(60, proxies) as client:
            assert await ask(client, "http://models.test:81/v1/x?y=1") == (200, b"via")
    [head] = proxy.heads
    assert head.startswith(
        "post http://models.test:81/v1/x?y=1 http/1.1\r\nhost: models.test:81\r\n"
    )
    credential = base64.b64encode(b"ada:se cret").decode().lower()
    assert f"\r\nproxy-authorization: basic {credential}\r\n" in head


async def test_tls_goes_through_a_proxy_to_the_server_itself(tls: Tls) -> None:
    async with serving(name_targets, tls.serving) as port, proxy_server(port) as proxy:
        proxies = http.Proxies({"https": f"127.0.0.1:{proxy.port}"}, lambda host: False)
        async with http.Client(60, proxies, tls.trusting, settle_s=0) as client:
            for target in ("/a", "/b"):
                answered = await ask(client, f"https://models.test:{port}{target}", b"")
                assert answered == (200, target.encode())
    [head] = proxy.heads
    assert head.startswith(f"connect models.test:{port} http/1.1\r\n")


async def test_a_proxy_that_refuses_is_a_broken_connection(tls: Tls) -> None:
    async with proxy_server() as proxy:
        proxy.refuses = True
        proxies = http.Proxies({"https": f"http://127.0.0.1:{proxy.port}"}, lambda host: False)
        async with http.Client(60, proxies, tls.trusting) as client:
            with pytest.raises(http.ConnectionBrokenError):
                await ask(client, "https://models.test/")


def test_the_environment_says_which_servers_have_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.test:3128")
    monkeypatch.setenv("no_proxy", "localhost,127.0.0.1,.inside.test")
    proxies = http.Proxies()

    def has_proxy(host: str) -> bool:
        return proxies.before(http.Origin(host, 8000, False)) is not None

    assert has_proxy("models.test")
    assert not has_proxy("127.0.0.1")
    assert not has_proxy("a.inside.test")


def test_whether_a_server_has_a_proxy_is_looked_up_once() -> None:
    asked: list[str] = []

    def bypasses(host: str) -> bool:
        asked.append(host)
        return False

    proxies = http.Proxies({"http": "http://proxy.test:3128"}, bypasses)
    origin = http.Origin("models.test", 80, False)
    assert proxies.before(origin) == proxies.before(origin) is not None
    assert asked == ["models.test:80"]
