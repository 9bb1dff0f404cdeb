"""The conversion time of an owner: used, refilled, refused."""

import pytest

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.media.conversion import seconds
from services.media.conversion.seconds import ConversionSeconds


def refused(budget: ConversionSeconds, owner: str, now_s: float) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        budget.check(owner, now_s)
    return caught.value


def test_what_is_used_comes_back_within_an_hour():
    budget = ConversionSeconds(600)
    budget.check("a", 0)
    budget.add("a", 599, 0)
    budget.check("a", 0)
    budget.add("a", 301, 0)  # overdrawn by 300
    error = refused(budget, "a", 0)
    assert error.reason == errors_pb2.REASON_RATE_LIMITED
    assert error.retry_after_s == 1_806
    assert refused(budget, "a", 1_800).retry_after_s == 6
    budget.check("a", 1_806)
    budget.check("b", 0)


def test_a_caller_who_waits_as_told_is_served():
    budget = ConversionSeconds(1.5)
    budget.add("a", 300, 0)
    budget.check("a", refused(budget, "a", 0).retry_after_s)


def test_only_so_many_owners_are_remembered(monkeypatch):
    monkeypatch.setattr(seconds, "MAX_OWNERS", 2)
    budget = ConversionSeconds(1)
    for owner in ("a", "b", "a", "c"):
        budget.add(owner, 5, 0)
    budget.check("b", 0)  # forgotten, as it has not converted for the longest
    refused(budget, "a", 0)
    refused(budget, "c", 0)
