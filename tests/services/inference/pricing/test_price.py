"""The arithmetic of costs: exact for any counts and prices, and None where a price is missing."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from services.common.money import MAX_PUSD, PER_DOLLAR, decimal_dollars
from services.inference.pricing.price import (
    PIECES,
    MostUsage,
    Price,
    Rate,
    Unit,
    cost,
    highest_cost,
    token_rates,
)

OTHERS = {Unit.WEB_SEARCH, Unit.REQUEST, Unit.AUDIO_HOUR, *PIECES}
TOKENS = [unit for unit in Unit if unit not in OTHERS]
PRICES = st.fixed_dictionaries(
    {unit: st.builds(Rate, st.integers(0, 10**9)) for unit in (Unit.INPUT, Unit.OUTPUT)},
    optional={unit: st.builds(Rate, st.integers(0, 10**9)) for unit in TOKENS[2:]},
)
COUNTS = st.dictionaries(st.sampled_from(TOKENS), st.integers(0, 10**8))
SONNET: Price = {
    Unit.INPUT: Rate(3_000_000, ((200_000, 6_000_000),)),
    Unit.OUTPUT: Rate(15_000_000, ((200_000, 22_500_000),)),
    Unit.CACHED_INPUT: Rate(300_000, ((200_000, 600_000),)),
}


@given(PRICES, COUNTS, COUNTS)
def test_costs_of_parts_add_up(price: Price, one: dict[Unit, int], other: dict[Unit, int]) -> None:
    together = {unit: one.get(unit, 0) + other.get(unit, 0) for unit in Unit}
    first, second = cost(price, one), cost(price, other)
    assert first is not None and second is not None
    assert cost(price, together) == first + second


@given(PRICES, COUNTS)
def test_a_cost_is_the_sum_of_its_units(price: Price, counts: dict[Unit, int]) -> None:
    each = [cost(price, {unit: count}) for unit, count in counts.items()]
    assert cost(price, counts) == sum(part for part in each if part is not None)
    assert None not in each


RATES = st.builds(
    Rate, st.integers(0, 10**9), st.sampled_from([(), ((1_000, 10**9),), ((10, 1), (1_000, 2))])
)
TOKEN_UNITS = (Unit.INPUT, Unit.OUTPUT, Unit.CACHED_INPUT, Unit.CACHE_WRITE, Unit.REASONING)


@given(
    st.fixed_dictionaries(
        {}, optional=dict.fromkeys((*TOKEN_UNITS, Unit.REQUEST, Unit.INPUT_AUDIO), RATES)
    ),
    st.lists(st.integers(0, 10**6), min_size=5, max_size=5),
)
def test_constant_prices_cost_what_others_do(price: Price, tokens: list[int]) -> None:
    rates = token_rates(price)
    if rates is not None:
        total = sum(rate * count for rate, count in zip(rates, tokens, strict=True))
        assert total == cost(price, dict(zip(TOKEN_UNITS, tokens, strict=True)))


def test_only_plain_prices_are_constant() -> None:
    price = {Unit.INPUT: Rate(3), Unit.OUTPUT: Rate(5), Unit.CACHED_INPUT: Rate(1)}
    assert token_rates(price) == (3, 5, 1, 3, 5)
    assert token_rates({**price, Unit.INPUT_AUDIO: Rate(9)}) == (3, 5, 1, 3, 5)
    assert token_rates({**price, Unit.REQUEST: Rate(7)}) is None
    assert token_rates({**price, Unit.OUTPUT: Rate(5, ((9, 6),))}) is None
    assert token_rates({Unit.INPUT: Rate(3)}) is None


@given(st.integers(0, MAX_PUSD))
def test_dollars_are_shown_exactly(pusd: int) -> None:
    shown = decimal_dollars(pusd)
    assert Fraction(shown) == Fraction(pusd, PER_DOLLAR)
    assert "e" not in shown.lower()


def test_a_tier_is_of_the_whole_request() -> None:
    below = {Unit.INPUT: 150_000, Unit.CACHED_INPUT: 50_000, Unit.OUTPUT: 10}
    above = {Unit.INPUT: 150_001, Unit.CACHED_INPUT: 50_000, Unit.OUTPUT: 10}
    assert cost(SONNET, below) == 150_000 * 3_000_000 + 50_000 * 300_000 + 10 * 15_000_000
    assert cost(SONNET, above) == 150_001 * 6_000_000 + 50_000 * 600_000 + 10 * 22_500_000


def test_a_missing_price_is_that_of_the_wider_unit() -> None:
    price = {Unit.INPUT: Rate(3), Unit.OUTPUT: Rate(5), Unit.CACHE_WRITE: Rate(7)}
    for unit, expected in (
        (Unit.CACHED_INPUT, 3),
        (Unit.CACHED_AUDIO, 3),
        (Unit.CACHE_WRITE_1H, 7),
        (Unit.REASONING, 5),
        (Unit.OUTPUT_AUDIO, 5),
    ):
        assert cost(price, {unit: 1}) == expected


def test_what_has_no_price_makes_the_cost_unknown() -> None:
    assert cost({Unit.INPUT: Rate(3)}, {Unit.INPUT: 1, Unit.OUTPUT: 1}) is None
    assert cost({Unit.INPUT: Rate(3)}, {Unit.INPUT: 1, Unit.OUTPUT: 0}) == 3
    assert cost(SONNET, {Unit.INPUT: 1, Unit.WEB_SEARCH: 1}) is None


def test_requests_and_hours_are_billed() -> None:
    # $0.006 a minute of audio, and $5 for a thousand requests
    price = {Unit.AUDIO_HOUR: Rate(360_000_000_000), Unit.REQUEST: Rate(5_000_000_000)}
    assert cost(price, {Unit.AUDIO_HOUR: 60_000}) == 6_000_000_000 + 5_000_000_000
    assert cost({Unit.AUDIO_HOUR: Rate(1)}, {Unit.AUDIO_HOUR: 1}) == 1


def test_a_cost_fits_64_bits() -> None:
    assert cost({Unit.INPUT: Rate(10**12)}, {Unit.INPUT: 2**53}) == MAX_PUSD


def test_images_are_billed_by_their_number_or_by_tokens() -> None:
    by_image, by_token = {Unit.IMAGE: Rate(7)}, {Unit.INPUT: Rate(1), Unit.OUTPUT: Rate(2)}
    counts = {Unit.INPUT: 10, Unit.OUTPUT_IMAGE: 5, Unit.IMAGE: 3}
    assert cost(by_image, counts) == 21
    assert cost(by_token, counts) == 20
    assert cost({**by_image, **by_token}, counts) == 41
    assert cost(by_token, {Unit.IMAGE: 3}) is None
    assert cost(by_image, {Unit.INPUT: 10}) is None
    most = MostUsage(10, 5, pieces={Unit.IMAGE: 3})
    assert highest_cost(by_image, most) == 21
    assert highest_cost(by_token, most) == 20
    assert highest_cost(by_image, most._replace(searches=1)) is None
    assert highest_cost(by_image, most._replace(pieces={})) is None
