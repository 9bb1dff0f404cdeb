"""Prices of models and the computation of costs, in whole picodollars. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from services.common.money import MAX_PUSD


class Unit(StrEnum):
    """Billed units: tokens, except for the last five. The values are names of settings."""

    INPUT = "input"
    OUTPUT = "output"
    CACHED_INPUT = "cached_input"
    CACHE_WRITE = "cache_write"
    CACHE_WRITE_1H = "cache_write_1h"
    REASONING = "reasoning"
    INPUT_AUDIO = "input_audio"
    INPUT_IMAGE = "input_image"
    INPUT_VIDEO = "input_video"
    CACHED_AUDIO = "cached_audio"
    CACHED_IMAGE = "cached_image"
    OUTPUT_AUDIO = "output_audio"
    OUTPUT_IMAGE = "output_image"
    OUTPUT_VIDEO = "output_video"
    WEB_SEARCH = "web_search"
    REQUEST = "request"
    AUDIO_HOUR = "audio_hour"
    IMAGE = "image"
    CHARACTER = "character"

    # `Enum.__hash__` is written in Python, and would take much of the time of pricing.
    __hash__ = str.__hash__


# The unit whose price applies if a model has no price for the key.
_PARENTS: Mapping[Unit, Unit] = {
    Unit.CACHED_INPUT: Unit.INPUT,
    Unit.CACHE_WRITE: Unit.INPUT,
    Unit.CACHE_WRITE_1H: Unit.CACHE_WRITE,
    Unit.REASONING: Unit.OUTPUT,
    Unit.INPUT_AUDIO: Unit.INPUT,
    Unit.INPUT_IMAGE: Unit.INPUT,
    Unit.INPUT_VIDEO: Unit.INPUT,
    Unit.CACHED_AUDIO: Unit.CACHED_INPUT,
    Unit.CACHED_IMAGE: Unit.CACHED_INPUT,
    Unit.OUTPUT_AUDIO: Unit.OUTPUT,
    Unit.OUTPUT_IMAGE: Unit.OUTPUT,
    Unit.OUTPUT_VIDEO: Unit.OUTPUT,
}
# Counted units per priced unit, if not 1: audio is priced per hour and counted in milliseconds.
_PARTS = {Unit.AUDIO_HOUR: 3_600_000}

# Counts by unit, AUDIO_HOUR in milliseconds. No token is counted in two units.
Counts = Mapping[Unit, int]

_INPUTS = frozenset(Unit) - {
    *(Unit.OUTPUT, Unit.REASONING, Unit.OUTPUT_AUDIO, Unit.OUTPUT_IMAGE, Unit.OUTPUT_VIDEO),
    *(Unit.WEB_SEARCH, Unit.REQUEST, Unit.AUDIO_HOUR, Unit.IMAGE, Unit.CHARACTER),
}
# Images that are made, and characters that are spoken. Such answers are billed by these or by their
# tokens: what has no price beside a priced one is not billed.
PIECES = frozenset({Unit.IMAGE, Unit.CHARACTER})
_NOT_TOKENS = frozenset({*PIECES, Unit.WEB_SEARCH, Unit.REQUEST, Unit.AUDIO_HOUR})


# Units that batch services bill as usual.
_FEES = frozenset({Unit.WEB_SEARCH, Unit.REQUEST, Unit.AUDIO_HOUR})


@dataclass(frozen=True, slots=True)
class Rate:
    """The price of a unit.

    Attributes:
        base: the price in picodollars.
        tiers: pairs of a number of input tokens and the price for requests with more input tokens;
            ascending.
    """

    base: int
    tiers: tuple[tuple[int, int], ...] = ()

    def at(self, input_tokens: int) -> int:
        """Return the price for a request by its input tokens, including cached ones."""
        price = self.base
        for start, higher in self.tiers:
            if input_tokens > start:
                price = higher
        return price


# The prices of a model.
Price = Mapping[Unit, Rate]


def cost(price: Price, counts: Counts) -> int | None:
    """Return the cost of a request in picodollars, or None if a unit has no price.

    Fractions of a picodollar, which only audio hours have, are rounded up.
    """
    input_tokens = sum([count for unit, count in counts.items() if unit in _INPUTS])
    total = 0
    if Unit.REQUEST in price:
        total = price[Unit.REQUEST].at(input_tokens)
    for unit, count in counts.items():
        if not count:
            continue
        rate = _rate(price, unit)
        if rate is None:
            if _is_billed_otherwise(price, counts, unit):
                continue
            return None
        total += -(-count * rate.at(input_tokens) // _PARTS.get(unit, 1))
    return min(total, MAX_PUSD)


def of_batches(price: Price, factor: float) -> Price:
    """Return the price of requests that a batch service runs.

    Args:
        price: the usual price.
        factor: the part of it that tokens cost there; fees stay.
    """
    permille = round(1000 * factor)

    def scaled(picodollars: int) -> int:
        return -(-picodollars * permille // 1000)

    return {
        unit: rate
        if unit in _FEES
        else Rate(
            scaled(rate.base), tuple([(start, scaled(higher)) for start, higher in rate.tiers])
        )
        for unit, rate in price.items()
    }


def _is_billed_otherwise(price: Price, counts: Counts, unit: Unit) -> bool:
    """Return whether images or characters are billed in place of tokens, or the other way round."""
    if unit in PIECES:
        return any(count and other not in _NOT_TOKENS for other, count in counts.items())
    is_by_piece = any(counts.get(piece) and piece in price for piece in PIECES)
    return is_by_piece and unit not in _NOT_TOKENS


class TokenRates(NamedTuple):
    """Prices in picodollars per token, for requests in which only tokens are billed."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int


# The units of `TokenRates`, in its order.
_TOKEN_UNITS = (Unit.INPUT, Unit.OUTPUT, Unit.CACHED_INPUT, Unit.CACHE_WRITE, Unit.REASONING)


def token_rates(price: Price) -> TokenRates | None:
    """Return constant prices of tokens; None if they are not known or not constant.

    They give the same costs as `cost`, in a fraction of the time.
    """
    rates = [_rate(price, unit) for unit in _TOKEN_UNITS]
    flat_rates = [rate.base for rate in rates if rate is not None and not rate.tiers]
    if len(flat_rates) < len(rates) or Unit.REQUEST in price:
        return None
    return TokenRates(*flat_rates)


def _rate(price: Price, unit: Unit) -> Rate | None:
    """Return the price of a unit, or of the nearest parent that has one."""
    current: Unit | None = unit
    while current is not None:
        if current in price:
            return price[current]
        current = _PARENTS.get(current)
    return None


class MostUsage(NamedTuple):
    """The most that a request may use.

    Attributes:
        input_tokens: input tokens.
        output_tokens: output tokens, of all answers.
        searches: web searches of the provider.
        inputs: the units of which input tokens may be, besides INPUT.
        outputs: the units of which output tokens may be, besides OUTPUT and REASONING.
        pieces: the images or characters of the answer, by unit.
    """

    input_tokens: int
    output_tokens: int
    searches: int = 0
    inputs: frozenset[Unit] = frozenset()
    outputs: frozenset[Unit] = frozenset()
    pieces: Counts = MappingProxyType({})


def highest_cost(price: Price, usage: MostUsage) -> int | None:
    """Return the highest cost of a request in picodollars, or None if a unit has no price.

    All tokens are of the dearest of their units. A lifetime of cache writes of an hour needs a
    price of its own if cache writes have one, since it is dearer.
    """
    if Unit.CACHE_WRITE_1H in usage.inputs and Unit.CACHE_WRITE in price:
        if Unit.CACHE_WRITE_1H not in price:
            return None
    total = 0
    tokens = usage.input_tokens
    if Unit.REQUEST in price:
        total = price[Unit.REQUEST].at(tokens)
    pieces = [(price[unit].at(tokens), n) for unit, n in usage.pieces.items() if unit in price]
    total += sum([rate * count for rate, count in pieces])
    for units, count in (
        ((Unit.INPUT, Unit.CACHE_WRITE, *usage.inputs), tokens),
        ((Unit.OUTPUT, Unit.REASONING, *usage.outputs), usage.output_tokens),
        ((Unit.WEB_SEARCH,), usage.searches),
    ):
        rates = [_rate(price, unit) for unit in units] if count else []
        if None in rates:
            if pieces and Unit.WEB_SEARCH not in units:
                continue
            return None
        total += count * max([rate.at(tokens) for rate in rates if rate is not None], default=0)
    return min(total, MAX_PUSD)
