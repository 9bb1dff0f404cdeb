"""A gateway of real processes for the attacks of one module, and what they may cost it."""

import asyncio
from collections.abc import Iterator

import pytest

from services.accounts.repository import AccountRepository
from services.common.settings import Storage
from services.common.storage.database import open_engine
from tests.attacks.observer import Observer, Prober
from tests.e2e.gateway import Gateway, gateway

NOBODY = 9  # a port on which no provider listens


@pytest.fixture(scope="module")
def settings() -> str:
    """Return TOML that follows the settings of the providers; modules override it."""
    return ""


@pytest.fixture(scope="module")
def upstream_port() -> int:
    """Return the port of both providers; modules with an upstream of their own override it."""
    return NOBODY


@pytest.fixture(scope="session")
def plain_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Run a gateway with one worker for all modules that need no other."""
    with gateway(tmp_path_factory.mktemp("target"), NOBODY, is_forked=False) as started:
        yield started


@pytest.fixture(scope="module")
def target(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    upstream_port: int,
    settings: str,
) -> Iterator[Gateway]:
    """Run a gateway with one worker; a plain one is shared with other modules."""
    if (upstream_port, settings) == (NOBODY, ""):
        yield request.getfixturevalue("plain_target")
        return
    folder = tmp_path_factory.mktemp("target")
    with gateway(folder, upstream_port, settings=settings) as started:
        yield started


@pytest.fixture(scope="module")
def attacker_key(request: pytest.FixtureRequest, target: Gateway) -> str:
    """Return a key of a user of the module, whose requests the observer does not time."""
    storage = Storage(data_dir=target.data_dir)
    user = request.module.__name__

    async def create() -> str:
        database = open_engine(storage)
        try:
            return await AccountRepository(database).create_key(user, plan="personal_free")
        finally:
            await database.dispose()

    return asyncio.run(create())


@pytest.fixture(scope="session")
def prober() -> Iterator[Prober]:
    """Run the process of another caller."""
    with Prober() as started:
        yield started


@pytest.fixture
def observer(target: Gateway, prober: Prober) -> Observer:
    """Return what measures the target's memory and another caller's latency."""
    return Observer(target, prober)
