"""Every endpoint answers each malformed body in its own format, and names the place at fault."""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import pytest

from tests.attacks import structure, valid
from tests.attacks.send_attempts import make_names, send
from tests.attacks.structure import Attempt
from tests.attacks.valid import Names
from tests.gateway_in_process import Gateway, running_gateway


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with running_gateway(tmp_path) as gateway:
        yield gateway


@pytest.fixture
async def names(gateway: Gateway) -> Names:
    return await make_names(gateway.http, gateway.url, gateway.key)


def corpus(requests: Iterable[valid.Request], step: int) -> Iterator[Attempt]:
    """Return each so many'th malformed body of a request, of another beginning for each request."""
    for number, request in enumerate(requests):
        yield from islice(structure.corpus(request), number % step, None, step)


async def faults_of(gateway: Gateway, attempts: Iterable[Attempt]) -> str:
    faults: Sequence[str] = await send(gateway.http, gateway.url, gateway.key, attempts)
    return "\n".join(faults[:20])


async def test_what_the_malformed_bodies_are_made_of_is_valid(
    gateway: Gateway, names: Names
) -> None:
    for request in valid.requests(names):
        # What these name is nobody's.
        missing = request.path.endswith(("delete", "destroy"))
        async with gateway.http.post(
            gateway.url + request.path, json=request.body, headers=gateway.api_key()
        ) as response:
            assert response.status == (404 if missing else 200), await response.text()


async def test_malformed_bodies_are_answered(
    gateway: Gateway, names: Names, caplog: pytest.LogCaptureFixture
) -> None:
    assert not await faults_of(gateway, corpus(valid.requests(names), 97))
    assert "unforeseen failure" not in caplog.text


@pytest.mark.parametrize("model", ["openai/echo", "anthropic/echo"])
async def test_malformed_bodies_are_answered_before_a_provider(
    gateway: Gateway, names: Names, caplog: pytest.LogCaptureFixture, model: str
) -> None:
    requests = valid.conversations(model, names.memory_id)
    assert not await faults_of(gateway, corpus(requests, 331))
    assert "unforeseen failure" not in caplog.text


# pydantic reads 201 levels, orjson writes 254 and reads 1,024; Python recurses 1,000 times.
@pytest.mark.parametrize("levels", [198, 201, 252, 990, 1_023])
@pytest.mark.parametrize("model", ["sandbox/echo", "openai/echo", "anthropic/echo"])
@pytest.mark.thorough(one_in=7)
async def test_deeply_nested_values_are_answered(
    gateway: Gateway, names: Names, caplog: pytest.LogCaptureFixture, model: str, levels: int
) -> None:
    requests = valid.conversations(model, names.memory_id)
    attempts = (each for request in requests for each in structure.nested(request, levels))
    assert not await faults_of(gateway, attempts)
    assert "unforeseen failure" not in caplog.text


@pytest.mark.soak
@pytest.mark.parametrize("model", ["sandbox/echo", "openai/echo", "anthropic/echo"])
async def test_all_malformed_bodies_are_answered(
    gateway: Gateway, names: Names, caplog: pytest.LogCaptureFixture, model: str
) -> None:
    requests = valid.conversations(model, names.memory_id)
    if model == "sandbox/echo":
        requests = valid.requests(names)
    assert not await faults_of(gateway, corpus(requests, 1))
    assert "unforeseen failure" not in caplog.text
