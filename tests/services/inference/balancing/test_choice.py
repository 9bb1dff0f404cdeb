"""Laws of the order of deployments."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.inference.balancing.choice import STICKY_SLACK, draw, ordered

NAMES = [f"provider-{number}/model" for number in range(8)]

weights = st.lists(
    st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.0, 3.0, 100.0]), min_size=1, max_size=8
).filter(any)


@st.composite
def deployments(chosen):
    """Return draws, weights and waits of as many deployments."""
    shares = chosen(weights)
    size = len(shares)
    draws = chosen(st.lists(st.floats(0, 1), min_size=size, max_size=size))
    waits = chosen(st.lists(st.sampled_from([0.0, 0.0, 0.5, 7.0]), min_size=size, max_size=size))
    return draws, shares, waits


loads = st.lists(st.floats(0, 1e6), min_size=8, max_size=8)


@given(deployments(), st.none() | loads, st.sampled_from([1.0, STICKY_SLACK]))
def test_each_deployment_has_one_place_in_the_order(drawn, busy, slack):
    draws, shares, waits = drawn
    busy = busy and busy[: len(draws)]
    assert sorted(ordered(draws, shares, waits, busy, slack)) == list(range(len(draws)))


@given(deployments(), st.none() | loads, st.sampled_from([1.0, STICKY_SLACK]))
def test_a_cooled_deployment_never_comes_before_a_free_one(drawn, busy, slack):
    draws, shares, waits = drawn
    order = ordered(draws, shares, waits, busy and busy[: len(draws)], slack)
    in_order = [waits[index] for index in order]
    assert in_order == sorted(in_order)


@given(deployments(), st.none() | loads)
def test_one_without_weight_is_first_only_without_others(drawn, busy):
    draws, shares, waits = drawn
    first = ordered(draws, shares, waits, busy and busy[: len(draws)])[0]
    if not shares[first]:
        assert not any(
            share and not wait and waits[first] == 0
            for share, wait in zip(shares, waits, strict=True)
        )


@pytest.mark.parametrize("shares", [[1, 1], [3, 1], [1, 2, 5], [0.5, 0.25, 0.25, 0]])
def test_choices_follow_the_weights(shares):
    source = random.Random(7)
    waits = [0.0] * len(shares)
    chosen = Counter(
        ordered([source.random() for _ in shares], shares, waits)[0] for _ in range(20_000)
    )
    for index, share in enumerate(shares):
        assert chosen[index] / 20_000 == pytest.approx(share / sum(shares), abs=0.015)


def test_conversations_follow_the_weights():
    shares = [3.0, 1.0]
    chosen = Counter(
        ordered([draw(b"%d" % number, name) for name in NAMES[:2]], shares, [0.0, 0.0])[0]
        for number in range(10_000)
    )
    assert chosen[0] / 10_000 == pytest.approx(0.75, abs=0.02)


@given(
    st.binary(min_size=1, max_size=16),
    st.integers(2, 8),
    st.data(),
)
def test_a_failed_deployment_moves_its_own_conversations_alone(affinity, size, data):
    shares = data.draw(
        st.lists(st.sampled_from([1.0, 2.0, 5.0]), min_size=size, max_size=size), label="weights"
    )
    failed = data.draw(st.integers(0, size - 1), label="failed")
    draws = [draw(affinity, name) for name in NAMES[:size]]
    before = ordered(draws, shares, [0.0] * size)
    waits = [9.0 if index == failed else 0.0 for index in range(size)]
    after = ordered(draws, shares, waits)
    assert after[:-1] == [index for index in before if index != failed]


def test_an_added_deployment_takes_only_its_share():
    moved = 0
    for number in range(4_000):
        draws = [draw(b"%d" % number, name) for name in NAMES[:4]]
        before = ordered(draws[:3], [1.0] * 3, [0.0] * 3)[0]
        after = ordered(draws, [1.0] * 4, [0.0] * 4)[0]
        assert after in (before, 3)
        moved += after != before
    assert moved / 4_000 == pytest.approx(0.25, abs=0.03)


def test_the_less_loaded_of_the_first_two_is_asked():
    draws, shares, free = [0.9, 0.5, 0.1], [1.0] * 3, [0.0] * 3
    assert ordered(draws, shares, free) == [0, 1, 2]
    assert ordered(draws, shares, free, [2, 1, 0]) == [1, 0, 2]
    assert ordered(draws, shares, free, [1, 1, 0]) == [0, 1, 2]


def test_a_sticky_one_stays_up_to_twice_the_load():
    draws, shares, free = [0.9, 0.5], [1.0] * 2, [0.0] * 2
    assert ordered(draws, shares, free, [4, 2], STICKY_SLACK) == [0, 1]
    assert ordered(draws, shares, free, [5, 2], STICKY_SLACK) == [1, 0]


def test_load_sends_nobody_to_one_that_is_cooled_or_a_standby():
    draws = [0.9, 0.5]
    assert ordered(draws, [1, 1], [0.0, 3.0], [9, 0]) == [0, 1]
    assert ordered(draws, [1, 0], [0.0, 0.0], [9, 0]) == [0, 1]
