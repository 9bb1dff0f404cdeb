"""The processes that the end-to-end tests talk to, started once for each test process."""

from collections.abc import Iterator

import pytest

from tests.e2e.gateway import Gateway, gateway, gateway_behind_envoy, sandbox_upstream


@pytest.fixture(scope="session")
def upstream_port() -> Iterator[int]:
    """The sandbox as a provider of its own."""
    with sandbox_upstream() as port:
        yield port


@pytest.fixture(scope="session")
def plain_gateway(
    tmp_path_factory: pytest.TempPathFactory, upstream_port: int
) -> Iterator[Gateway]:
    with gateway(tmp_path_factory.mktemp("gateway"), upstream_port) as started:
        yield started


@pytest.fixture(scope="session")
def behind_envoy(tmp_path_factory: pytest.TempPathFactory, upstream_port: int) -> Iterator[Gateway]:
    with gateway_behind_envoy(tmp_path_factory.mktemp("envoy"), upstream_port) as started:
        yield started


@pytest.fixture(scope="session", params=["plain", "envoy"])
def front(request: pytest.FixtureRequest) -> Gateway:
    """A gateway, and the same behind a real Envoy."""
    name = "plain_gateway" if request.param == "plain" else "behind_envoy"
    started: Gateway = request.getfixturevalue(name)
    return started


@pytest.fixture(params=["sandbox/echo", "openai/echo", "anthropic/echo", "gemini/echo"])
def model(request: pytest.FixtureRequest) -> str:
    """The echo model: in the process, and as an upstream in every dialect."""
    name: str = request.param
    return name
