"""The HTTP listener of a real gateway with TLS: its certificate, and those of its callers."""

import asyncio
import os
import signal
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
import trustme

from tests.certificates import Certificates, issue_by
from tests.e2e.gateway import Gateway, gateway
from tests.waiting import until

NOBODY = 1
# Enough for whatever must happen; only a failing test waits so long.
SOON_S = 60.0
# With TLS 1.3 a client hears that its certificate is missing when it reads the answer.
REFUSED = (httpx2.TransportError, ssl.SSLError)
CHAT = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA) -> Certificates:
    return issue_by(authority, tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def encrypted(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[Gateway]:
    """A gateway that takes callers with a certificate alone."""
    settings = (
        f'[server]\ntls_certificate = "{certificates.certificate}"\n'
        f'tls_key = "{certificates.key}"\ntls_client_ca = "{certificates.ca}"\n'
        "[limits]\nstalled_reader_s = 1\n"
    )
    with gateway(tmp_path_factory.mktemp("encrypted"), NOBODY, settings=settings) as started:
        yield started


def caller(
    at: Gateway, certificates: Certificates, *, shows_certificate: bool = True
) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        verify=certificates.client(shows_certificate=shows_certificate),
        timeout=SOON_S,
        headers={"authorization": f"Bearer {at.key}"},
        base_url=f"https://127.0.0.1:{at.port}",
    )


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("padding", [0, 200_000], ids=["plain", "large"])
async def test_chats_are_answered_over_tls(
    encrypted: Gateway, certificates: Certificates, stream: bool, padding: int
) -> None:
    body = CHAT | {"stream": stream, "user": "u" * padding}
    async with caller(encrypted, certificates) as http:
        # Twice, as the second request comes on the same connection.
        for _ in range(2):
            answer = await http.post("/beta/v1/chat/completions", json=body)
            assert answer.status_code == 200, answer.text
            assert "Hello" in answer.text


async def test_a_refused_request_on_tls_can_be_read(
    encrypted: Gateway, certificates: Certificates
) -> None:
    # The rest of the body is never read, and a TLS connection cannot be half closed.
    headers = {"content-type": "application/json", "authorization": "Bearer gw-wrong"}
    async with caller(encrypted, certificates) as http:
        answer = await http.post(
            "/beta/v1/chat/completions", content=b" " * 900_000, headers=headers
        )
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "invalid_api_key"
    # A later request is logged after what became of the first.
    async with caller(encrypted, certificates) as http:
        await http.get("/nowhere")
    await asyncio.to_thread(encrypted.process.wait_for, '"path":"/nowhere"')
    assert "unforeseen" not in encrypted.process.output
    assert "Traceback" not in encrypted.process.output


async def test_only_callers_with_a_certificate_connect(
    encrypted: Gateway, certificates: Certificates
) -> None:
    async with caller(encrypted, certificates, shows_certificate=False) as http:
        with pytest.raises(REFUSED):
            await http.get("/healthz")
    async with httpx2.AsyncClient(timeout=SOON_S) as http:
        with pytest.raises(REFUSED):
            await http.get(f"{encrypted.address}/healthz")


async def test_operators_are_served_without_tls(encrypted: Gateway) -> None:
    async with httpx2.AsyncClient(timeout=SOON_S) as http:
        answer = await http.get(f"{encrypted.metrics_url}/readyz?verbose")
    assert answer.status_code == 200


async def test_a_new_certificate_is_used_without_a_restart(
    encrypted: Gateway, certificates: Certificates, authority: trustme.CA
) -> None:
    async def shown() -> bytes:
        _, writer = await asyncio.open_connection(
            "127.0.0.1", encrypted.port, ssl=certificates.client()
        )
        tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
        shown = tls.getpeercert(binary_form=True) or b""
        writer.close()
        await writer.wait_closed()
        return shown

    before = await shown()
    issue_by(authority, certificates.certificate.parent)
    assert await shown() == before
    os.kill(encrypted.process.pid, signal.SIGHUP)

    async def is_replaced() -> bool:
        return await shown() != before

    await until(is_replaced, every_s=0.02)


def test_a_certificate_that_cannot_be_read_ends_the_start(tmp_path: Path) -> None:
    settings = '[server]\ntls_certificate = "none.pem"\ntls_key = "none.key"\n'
    with pytest.raises(AssertionError, match="No such file"):
        with gateway(tmp_path, NOBODY, settings=settings):
            raise RuntimeError("it started")
