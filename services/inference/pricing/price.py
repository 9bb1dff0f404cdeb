"""Prices of models and the costs that follow from them, in whole picodollars. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from services.common.money import MAX_PUSD


class Unit(StrEnum):
    """What providers bill: tokens, but for the last three. The values are names of settings."""

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

    # Enum's own is a function of Python's, which takes much of the time of pricing.
    __hash__ = str.__hash__


# The unit whose price counts where a model has none for another.
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
# How many of a price's unit are one of the counted unit: prices of an hour are for milliseconds.
_PARTS = {Unit.AUDIO_HOUR: 3_600_000}

# How much a request had of each unit; of AUDIO_HOUR in milliseconds. No token is in two of them.
Counts = Mapping[Unit, int]

_INPUTS = frozenset(Unit) - {
    *(Unit.OUTPUT, Unit.REASONING, Unit.OUTPUT_AUDIO, Unit.OUTPUT_IMAGE, Unit.OUTPUT_VIDEO),
    *(Unit.WEB_SEARCH, Unit.REQUEST, Unit.AUDIO_HOUR),
}


@dataclass(frozen=True, slots=True)
class Rate:
    """The price of a unit.

    Attributes:
        base: in picodollars.
        tiers: for requests with more input tokens than the first number, the second is the price;
            ascending.
    """

    base: int
    tiers: tuple[tuple[int, int], ...] = ()

    def at(self, input_tokens: int) -> int:
        """Return the price in a request with so many input tokens, cached ones included."""
        price = self.base
        for start, higher in self.tiers:
            if input_tokens > start:
                price = higher
        return price


# The prices of a model.
Price = Mapping[Unit, Rate]


def cost(price: Price, counts: Counts) -> int | None:
    """Return the cost of a request, or None where something in it has no price.

    A part of a picodollar is rounded up, which only prices of hours come to.
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
            return None
        total += -(-count * rate.at(input_tokens) // _PARTS.get(unit, 1))
    return min(total, MAX_PUSD)


class TokenRates(NamedTuple):
    """What a token costs in a request in which nothing else is billed, in picodollars."""

    read: int
    wrote: int
    cached: int
    cached_anew: int
    reasoning: int


# The units of `TokenRates`, in its order.
_TOKEN_UNITS = (Unit.INPUT, Unit.OUTPUT, Unit.CACHED_INPUT, Unit.CACHE_WRITE, Unit.REASONING)


def token_rates(price: Price) -> TokenRates | None:
    """Return what tokens cost, or None where that depends on how many there are, or is not known.

    Such a cost is what `cost` returns, in a fraction of the time.
    """
    rates = [_rate(price, unit) for unit in _TOKEN_UNITS]
    known = [rate.base for rate in rates if rate is not None and not rate.tiers]
    if len(known) < len(rates) or Unit.REQUEST in price:
        return None
    return TokenRates(*known)


def _rate(price: Price, unit: Unit) -> Rate | None:
    """Return the price of a unit, or of the one that it is a kind of."""
    current: Unit | None = unit
    while current is not None:
        if current in price:
            return price[current]
        current = _PARENTS.get(current)
    return None
