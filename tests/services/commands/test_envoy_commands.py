"""The ports of `gateway envoy run`."""

import pytest

from services.commands.envoy import free_port


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_port_of_zero_is_one_that_is_free(host: str) -> None:
    assert free_port(7, host) == 7
    assert 1024 <= free_port(0, host) <= 65_535
