import pytest

from tests.services.common.grpc.inprocess.carriers import CARRIERS, Carrier, Endless


@pytest.fixture(params=CARRIERS)
def carrier(request: pytest.FixtureRequest) -> Carrier:
    """Everything that can carry a call."""
    return Carrier(request.param)


@pytest.fixture
def inprocess() -> Carrier:
    return Carrier("inprocess")


@pytest.fixture
def endless() -> Endless:
    return Endless()
