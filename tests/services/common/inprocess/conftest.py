import pytest

from tests.services.common.inprocess.carriers import CARRIERS, Carrier


@pytest.fixture(params=CARRIERS)
def carrier(request: pytest.FixtureRequest) -> Carrier:
    """Each of what can carry a call."""
    return Carrier(request.param)


@pytest.fixture
def inprocess() -> Carrier:
    return Carrier("inprocess")
