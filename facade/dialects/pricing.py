"""Token prices of a model, for lists of models in either format."""

from gateway.inference.v1.inference_pb2 import Model
from services.common.money import decimal_dollars

_TOKENS = 1_000_000
_UNITS = ("input", "output", "cached_input", "cache_write", "reasoning")


def pricing(model: Model) -> dict[str, str] | None:
    """Return decimal US dollars per million tokens of each kind, or None if unknown."""
    if not model.HasField("prices"):
        return None
    return {unit: decimal_dollars(getattr(model.prices, unit) * _TOKENS) for unit in _UNITS}
