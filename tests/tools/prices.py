"""Writes `services/inference/pricing/prices.jsonl` from the data of the package genai-prices.

`make prices` runs it in an environment of its own, so that the gateway depends on no more than the
file. Left out are the prices of batches, of other service tiers, and whole models that are billed
by what no usage tells, such as pages and characters.
"""

from collections.abc import Iterator
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson
from genai_prices import types
from genai_prices.data import providers

FILE = Path(__file__).parents[2] / "services" / "inference" / "pricing" / "prices.jsonl"
# Names of the data set's units here, and how many of ours one of theirs is.
UNITS = {
    "input_mtok": ("input", 10**6),
    "output_mtok": ("output", 10**6),
    "cache_read_mtok": ("cached_input", 10**6),
    "cache_write_mtok": ("cache_write", 10**6),
    "cache_write_1h_mtok": ("cache_write_1h", 10**6),
    "output_reasoning_mtok": ("reasoning", 10**6),
    "input_audio_mtok": ("input_audio", 10**6),
    "input_image_mtok": ("input_image", 10**6),
    "input_video_mtok": ("input_video", 10**6),
    "cache_audio_read_mtok": ("cached_audio", 10**6),
    "cache_image_read_mtok": ("cached_image", 10**6),
    "output_audio_mtok": ("output_audio", 10**6),
    "output_image_mtok": ("output_image", 10**6),
    "output_video_mtok": ("output_video", 10**6),
    "web_searches_kcount": ("web_search", 10**3),
    "requests_kcount": ("request", 10**3),
    "audio_hours": ("audio_hour", 1),
    "input_audio_hours": ("audio_hour", 1),
}
# Billed beside tokens, and not told by any usage.
IGNORED = frozenset({"storage_searches_kcount"})


class UnknownUnitError(Exception):
    """Error raised for a model that is billed by what no usage tells."""


def clause(match: Any) -> Any:
    """Return a rule on names: a mark and a text, `{"any": […]}` or `{"all": […]}`."""
    match match:
        case types.ClauseEquals():
            return "=" + match.equals.lower()
        case types.ClauseStartsWith():
            return "^" + match.starts_with.lower()
        case types.ClauseEndsWith():
            return "$" + match.ends_with.lower()
        case types.ClauseContains():
            return "*" + match.contains.lower()
        case types.ClauseRegex():
            return "~" + match.regex
        case types.ClauseOr():
            return {"any": [clause(one) for one in match.or_]}
        case types.ClauseAnd():
            return {"all": [clause(one) for one in match.and_]}
    raise SystemExit(f"the data set has an unknown rule {match}")


def picodollars(price: Decimal, per: int) -> int:
    """Return the price of one unit; some of the data set's have the dust of floats."""
    return int((price * 10**12 / per).to_integral_value())


def rates(prices: Any) -> dict[str, Any]:
    """Return prices by unit: a number, or the usual one and those above so many input tokens."""
    rates_by_unit: dict[str, Any] = {}
    for name, price in vars(prices).items():
        if price is None or name in IGNORED or name.startswith("_"):
            continue
        if name not in UNITS:
            raise UnknownUnitError(name)
        unit, per = UNITS[name]
        if isinstance(price, Decimal):
            rates_by_unit[unit] = picodollars(price, per)
        else:
            rates_by_unit[unit] = [picodollars(price.base, per)]
            for tier in sorted(price.tiers, key=lambda one: one.start):
                rates_by_unit[unit] += [tier.start, picodollars(tier.price, per)]
    return rates_by_unit


def when(constraint: Any) -> str:
    """Return when a price holds: "", from a date on, or at times of the day (UTC)."""
    match constraint:
        case None:
            return ""
        case types.StartDateConstraint():
            return constraint.start_date.isoformat()
        case types.TimeOfDateConstraint():
            return f"{constraint.start_time:%H:%M}-{constraint.end_time:%H:%M}"
    raise SystemExit(f"the data set has an unknown constraint {constraint}")


def models(provider: Any) -> Iterator[Any]:
    """Return rules on names with prices; of prices the last one that holds now counts."""
    for model in provider.models:
        prices = model.prices if isinstance(model.prices, list) else [None]
        try:
            if prices == [None]:
                yield [clause(model.match), ["", rates(model.prices)]]
            else:
                dated = [[when(one.constraint), rates(one.prices)] for one in prices]
                yield [clause(model.match), *dated]
        except UnknownUnitError:
            # Named all the same, so that no later rule takes it.
            yield [clause(model.match)]


def main() -> None:
    """Write the file: a line with all providers, and then a line with the models of each."""
    head = {
        "source": f"genai-prices {version('genai-prices')}",
        "providers": [
            {"id": one.id, "pattern": one.api_pattern, "others": one.fallback_model_providers or []}
            for one in providers
        ],
    }
    lines = [head, *(list(models(provider)) for provider in providers)]
    FILE.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))


if __name__ == "__main__":
    main()
