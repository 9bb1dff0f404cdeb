"""Bytes of bodies that are held at once: what is reserved, refused and given back."""

import pytest

from facade.body_budget import BodyBudget
from services.common.errors import GatewayError


def refusal(budget: BodyBudget, user: str, size: int, own: int = 0) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        budget.reserve(user, size, own)
    return caught.value


def test_a_users_bodies_have_a_bound_together():
    budget = BodyBudget(total=100, per_user=10)
    budget.reserve("a", 6, 0)
    error = refusal(budget, "a", 5)
    assert (error.http_status, error.limit) == (429, "limits.max_buffered_bytes_per_user")
    assert error.retry_after_s == 1
    budget.reserve("a", 4, 0)
    budget.reserve("b", 10, 0)
    assert budget.held == 20


def test_the_bodies_of_all_users_have_a_bound_together():
    budget = BodyBudget(total=15, per_user=10)
    budget.reserve("a", 10, 0)
    error = refusal(budget, "b", 6)
    assert (error.http_status, error.limit) == (503, "limits.max_buffered_bytes")
    assert error.retry_after_s == 1
    budget.release("a", 10)
    budget.reserve("b", 6, 0)


def test_a_body_alone_always_has_room():
    budget = BodyBudget(total=15, per_user=10)
    budget.reserve("a", 20, 0)
    budget.reserve("a", 20, 20)
    assert refusal(budget, "a", 1).http_status == 429
    assert refusal(budget, "b", 1).http_status == 503
    budget.release("a", 40)
    assert budget.held == 0


def test_a_body_that_grows_beside_another_is_refused():
    budget = BodyBudget(total=100, per_user=10)
    budget.reserve("a", 4, 0)
    budget.reserve("a", 4, 0)
    assert refusal(budget, "a", 3, own=4).http_status == 429
    budget.release("a", 4)
    budget.reserve("a", 30, 4)
