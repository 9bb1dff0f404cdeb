import pytest

from tests.services.common.link.carriers import CARRIERS, Carrier


@pytest.fixture(params=CARRIERS)
def carrier(request: pytest.FixtureRequest) -> Carrier:
    """Each of what can carry a call."""
    return Carrier(request.param)


@pytest.fixture
def link() -> Carrier:
    return Carrier("link")
