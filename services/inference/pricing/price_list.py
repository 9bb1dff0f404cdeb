"""Published prices of models, from the data of the package genai-prices (MIT licence).

`make prices` writes `prices.jsonl` from the package, which itself takes 1.6 s to import and 98 MB.
The file is not kept in memory: a provider's line is parsed at the first lookup of each model.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import orjson

from services.inference.pricing.price import Price, Rate, Unit

_FILE = files(__package__).joinpath("prices.jsonl")
# Maximum models whose prices are cached.
_KEPT = 1_000
# A date at the end of a name as some gateways write it; OpenAI's own names have hyphens in it.
_COMPACT_DATE = re.compile(r"-(20\d{2})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=-|:|$)")


@dataclass(frozen=True, slots=True)
class PublishedPrices:
    """The prices of a model over time.

    Attributes:
        dated: pairs of a time and a price; the last pair whose time applies counts. A time is ""
            for always, `2026-03-13` from that day on, or `00:30-16:30` for these hours (UTC).
    """

    dated: Sequence[tuple[str, Price]]

    @property
    def constant(self) -> Price | None:
        """The price at all times, or None if it varies."""
        return self.dated[0][1] if len(self.dated) == 1 else None

    def at(self, now_ms: int) -> Price:
        """Return the price at a time, in Unix milliseconds."""
        if self.constant is not None:
            return self.constant
        now = datetime.fromtimestamp(now_ms / 1000, UTC)
        day, time = now.strftime("%Y-%m-%d"), now.strftime("%H:%M")
        for when, price in reversed(self.dated):
            if _holds(when, day, time):
                return price
        return self.dated[0][1]


@lru_cache(_KEPT)
def published_prices(base_url: str, model: str) -> PublishedPrices | None:
    """Return the published prices of a model at a server, or None.

    Args:
        base_url: the base URL of the server's API.
        model: the server's name of the model.
    """
    matching = (i for i, pattern in enumerate(_patterns()) if pattern.match(base_url))
    index = next(matching, None)
    if index is None:
        return None
    with _FILE.open("rb") as file:
        lines = file.read().splitlines()
    head = orjson.loads(lines[0])["providers"]
    ids = [entry["id"] for entry in head]
    places = [index, *(ids.index(other) for other in head[index]["others"])]
    name = model.lower()
    for spelled in dict.fromkeys((name, _COMPACT_DATE.sub(r"-\1-\2-\3", name))):
        for place in places:
            for rule, *dated in orjson.loads(lines[1 + place]):
                if _matches(rule, spelled):
                    return _read(dated)
    return None


@cache
def _patterns() -> Sequence[re.Pattern[str]]:
    with _FILE.open("rb") as file:
        head = orjson.loads(file.readline())
    return [re.compile(provider["pattern"]) for provider in head["providers"]]


def _matches(rule: Any, name: str) -> bool:
    """Return whether a rule of the data set matches a name in lower case."""
    if isinstance(rule, dict):
        [(how, rules)] = rule.items()
        matches = (_matches(one, name) for one in rules)
        return any(matches) if how == "any" else all(matches)
    mark, text = rule[0], rule[1:]
    match mark:
        case "=":
            return name == str(text)
        case "^":
            return name.startswith(text)
        case "$":
            return name.endswith(text)
        case "*":
            return text in name
    return re.search(text, name) is not None


def _holds(when: str, day: str, time: str) -> bool:
    start, hyphen, end = when.partition("-")
    if not hyphen:
        return True
    if ":" not in start:
        return day >= when
    return start <= time < end if start <= end else time >= start or time < end


def _read(dated: Sequence[tuple[str, Mapping[str, Any]]]) -> PublishedPrices | None:
    """Parse prices; return None for a model billed by units that its usage does not report."""
    if not dated:
        return None
    return PublishedPrices(
        [
            (when, {Unit(name): _rate(value) for name, value in rates.items()})
            for when, rates in dated
        ]
    )


def _rate(value: int | Sequence[int]) -> Rate:
    if isinstance(value, int):
        return Rate(value)
    return Rate(value[0], tuple(zip(value[1::2], value[2::2], strict=True)))
