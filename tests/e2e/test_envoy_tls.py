"""Envoy with TLS on every side: callers, facades and gRPC services show certificates."""

import asyncio
import os
import signal
import ssl
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import grpc
import httpx2
import pytest

from gateway.accounts.v1 import accounts_pb2, accounts_pb2_grpc
from tests.bench import processes
from tests.certificates import Certificates, issue
from tests.e2e.gateway import Gateway, envoy_alone, gateway, gateway_behind_envoy
from tests.e2e.processes import free_port
from tests.waiting import until

NOBODY = 1
# Enough for whatever must happen; only a failing test waits so long.
SOON_S = 60.0
# With TLS 1.3 a client hears that its certificate is missing when it reads the answer.
REFUSED = (httpx2.TransportError, ssl.SSLError)
WORKER = "services.worker"
CHAT = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}

_SETTINGS = """\
[server]
tls_certificate = "{certificate}"
tls_key = "{key}"
tls_client_ca = "{ca}"
[grpc]
certificate = "{certificate}"
private_key = "{key}"
client_ca = "{ca}"
[envoy]
certificate = "{certificate}"
private_key = "{key}"
client_ca = "{client_ca}"
upstream_ca = "{upstream_ca}"
upstream_certificate = "{certificate}"
upstream_private_key = "{key}"
"""


def settings_of(
    certificates: Certificates, *, client_ca: Path | str = "", upstream_ca: Path | None = None
) -> str:
    return _SETTINGS.format(
        ca=certificates.ca,
        certificate=certificates.certificate,
        key=certificates.key,
        client_ca=client_ca,
        upstream_ca=upstream_ca or certificates.ca,
    )


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return issue(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def encrypted(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("encrypted")
    settings = settings_of(certificates)
    with gateway_behind_envoy(folder, NOBODY, workers=2, settings=settings) as started:
        yield started


def caller(at: Gateway, tls: ssl.SSLContext) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        verify=tls,
        timeout=SOON_S,
        headers={"authorization": f"Bearer {at.key}"},
        base_url=f"https://127.0.0.1:{at.port}",
    )


async def test_http_and_grpc_callers_share_the_encrypted_port(
    encrypted: Gateway, certificates: Certificates
) -> None:
    async with caller(encrypted, certificates.client(shows_certificate=False)) as http:
        answer = await http.post("/beta/v1/chat/completions", json=CHAT)
        assert answer.status_code == 200, answer.text
        assert (await http.get("/readyz")).status_code == 200
    credentials = grpc.ssl_channel_credentials(certificates.ca.read_bytes())
    async with grpc.aio.secure_channel(f"127.0.0.1:{encrypted.port}", credentials) as channel:
        owner = await accounts_pb2_grpc.AccountsServiceStub(channel).Identify(
            accounts_pb2.IdentifyRequest(),
            metadata=[("authorization", f"Bearer {encrypted.key}")],
            timeout=SOON_S,
        )
    assert owner.plan == accounts_pb2.PLAN_ENTERPRISE


async def test_callers_may_speak_http_2(encrypted: Gateway, certificates: Certificates) -> None:
    tls = certificates.client()
    tls.set_alpn_protocols(["h2"])
    _, writer = await asyncio.open_connection("127.0.0.1", encrypted.port, ssl=tls)
    chosen: ssl.SSLObject = writer.get_extra_info("ssl_object")
    assert chosen.selected_alpn_protocol() == "h2"
    writer.close()
    await writer.wait_closed()


async def test_facades_take_nobody_without_a_certificate(
    encrypted: Gateway, certificates: Certificates
) -> None:
    line = encrypted.process.wait_for(r"The gateway listens on (https://\S+)")
    async with httpx2.AsyncClient(verify=certificates.client(), timeout=SOON_S) as http:
        assert (await http.get(f"{line[1]}/healthz")).status_code == 200
    stranger = certificates.client(shows_certificate=False)
    async with httpx2.AsyncClient(verify=stranger, timeout=SOON_S) as http:
        with pytest.raises(REFUSED):
            await http.get(f"{line[1]}/healthz")


async def test_a_stream_is_passed_on_as_it_comes(
    encrypted: Gateway, certificates: Certificates
) -> None:
    body = CHAT | {"model": "sandbox/stall-half", "stream": True, "fallback": "disabled"}
    async with caller(encrypted, certificates.client()) as http, asyncio.timeout(SOON_S):
        async with http.stream("POST", "/beta/v1/chat/completions", json=body) as answer:
            assert answer.status_code == 200
            # The model falls silent after half of its answer, so nothing ends the stream.
            async for line in answer.aiter_lines():
                if "Sandbox" in line:
                    break


@pytest.mark.parametrize(
    "path", ["/metrics", "/readyz?verbose", "/readyz?verbose=1&a", "/admin/v1/keys"]
)
async def test_operators_paths_are_not_there(
    encrypted: Gateway, certificates: Certificates, path: str
) -> None:
    async with caller(encrypted, certificates.client()) as http:
        assert (await http.get(path)).status_code == 404


async def test_administration_over_grpc_is_not_there(
    encrypted: Gateway, certificates: Certificates
) -> None:
    credentials = grpc.ssl_channel_credentials(certificates.ca.read_bytes())
    async with grpc.aio.secure_channel(f"127.0.0.1:{encrypted.port}", credentials) as channel:
        call = channel.unary_unary("/gateway.accounts.v1.AdminService/ListKeys")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(b"", timeout=SOON_S)
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
    # Envoy's answer: the gateway, which has no such method either, says so in its own words.
    assert not refused.value.details()


async def test_a_killed_worker_costs_one_request_at_most(
    encrypted: Gateway, certificates: Certificates
) -> None:
    async with caller(encrypted, certificates.client()) as http:

        async def chat() -> int:
            answer = await http.post("/beta/v1/chat/completions", json=CHAT)
            assert answer.status_code == 200 or answer.headers["retry-after"]
            return answer.status_code

        assert [await chat() for _ in range(10)] == [200] * 10
        family = processes.family(encrypted.process.pid)
        os.kill(processes.of_modules(family, [WORKER])[WORKER], signal.SIGKILL)
        began = time.monotonic()
        statuses = [await chat() for _ in range(50)]
        assert statuses.count(200) >= 49, statuses
        # No request waited for the worker that is gone until a time was up.
        assert time.monotonic() - began < 30


async def test_a_facade_of_another_authority_is_not_trusted(
    tmp_path: Path, certificates: Certificates
) -> None:
    other = issue(tmp_path / "other")
    config, port = tmp_path / "envoy.toml", free_port()
    config.write_text(settings_of(certificates, upstream_ca=other.ca))
    with gateway(tmp_path, NOBODY, settings=settings_of(certificates)) as at:
        environ = {"GATEWAY_CONFIG": str(config), "GATEWAY_PORT": str(at.port)}
        with envoy_alone(environ, port):
            async with caller(replace(at, port=port), certificates.client()) as http:

                async def status() -> int:
                    try:
                        return (await http.get("/healthz")).status_code
                    except httpx2.ConnectError:
                        return 0

                assert await until(status, every_s=0.1) == 503


async def test_callers_show_certificates_where_one_is_asked_for(
    tmp_path: Path, certificates: Certificates
) -> None:
    settings = settings_of(certificates, client_ca=certificates.ca)
    with gateway_behind_envoy(tmp_path, NOBODY, settings=settings) as at:
        async with caller(at, certificates.client()) as http:
            assert (await http.get("/healthz")).status_code == 200
        async with caller(at, certificates.client(shows_certificate=False)) as http:
            with pytest.raises(REFUSED):
                await http.get("/healthz")
