"""The processes that the end-to-end tests talk to, started once for each test process."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.gateway import Gateway, gateway, gateway_behind_envoy, sandbox_upstream

# Behind Envoy one model is asked: to Envoy, models differ in one word of a body.
BEHIND_ENVOY = "openai/"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the other models behind Envoy."""
    left_out = [item for item in items if is_repetition(getattr(item, "callspec", None))]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]


def is_repetition(call: Any) -> bool:
    """Return whether a call of a test differs from another in nothing that Envoy sees."""
    if call is None or call.params.get("front") != "envoy":
        return False
    return not call.params.get("model", BEHIND_ENVOY).startswith(BEHIND_ENVOY)


@pytest.fixture(scope="session")
def upstream_port() -> Iterator[int]:
    """The sandbox as a provider of its own."""
    with sandbox_upstream() as port:
        yield port


@pytest.fixture(scope="session")
def plain_gateway(
    tmp_path_factory: pytest.TempPathFactory, upstream_port: int
) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("gateway")
    with gateway(folder, upstream_port, is_forked=False) as started:
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
