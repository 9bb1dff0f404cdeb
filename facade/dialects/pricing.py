"""Token prices of a model, for lists of models in either format."""

from gateway.inference.v1.inference_pb2 import Model
from services.common.money import decimal_dollars

_TOKENS = 1_000_000
# OpenRouter's names of prices, by which its clients read them.
_OF_OPENROUTER = {
    "prompt": "input",
    "completion": "output",
    "input_cache_read": "cached_input",
    "input_cache_write": "cache_write",
    "internal_reasoning": "reasoning",
}
_UNITS = ("input", "output", "cached_input", "cache_write", "reasoning")


def pricing(model: Model) -> dict[str, str] | None:
    """Return decimal US dollars per million tokens of each kind, or None if unknown."""
    if not model.HasField("prices"):
        return None
    return {unit: decimal_dollars(getattr(model.prices, unit) * _TOKENS) for unit in _UNITS}


def token_pricing(model: Model) -> dict[str, str]:
    """Return decimal US dollars per token under OpenRouter's names; none if unknown."""
    if not model.HasField("prices"):
        return {}
    prices = model.prices
    return {name: decimal_dollars(getattr(prices, unit)) for name, unit in _OF_OPENROUTER.items()}


def caches(model: Model) -> bool | None:
    """Return whether a model's prompt cache makes tokens cheaper; None if unknown."""
    if not model.HasField("prices"):
        return None
    return 0 < model.prices.cached_input < model.prices.input
