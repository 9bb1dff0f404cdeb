"""Learn how many output tokens a model can produce, from its provider's error responses.

A provider that rejects `max_tokens` as too large names the bound. The request is repeated with the
bound, and later requests to that model do not exceed it.
"""

import re
from collections import OrderedDict

from services.inference.circuit_breaker import ModelKey

_FIELD = r"max_?(?:completion_?|output_?|new_?)?tokens"
_MOST = r"(?:<=|≤|at most|up to|no more than|less than or equal to|not exceed|maximum (?:is|of))"
_BOUNDS = (
    # OpenAI: max_tokens is too large: 64000. This model supports at most 16384 completion tokens
    r"supports at most (\d+) (?:completion|output) tokens",
    # Anthropic: max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens
    r"> (\d+), which is the maximum allowed number of output tokens",
    # Bedrock: The maximum tokens you requested exceeds the model limit of 4096.
    r"maximum tokens you requested exceeds the model limit of (\d+)",
    # DeepSeek: the valid range of max_tokens is [1, 8192]
    # DashScope: Range of max_tokens should be [1, 8192]
    rf"range of {_FIELD} (?:is|should be) \[\d+, ?(\d+)\]",
    # Groq: `max_tokens` must be less than or equal to `8192`
    # OpenAI: Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 128000
    # pydantic: "loc": ["body", "max_tokens"], "msg": "Input should be less than or equal to 4096"
    rf"{_FIELD}\b[^\d]{{0,120}}{_MOST}\W{{0,3}}(\d+)",
    # max_tokens (64000) exceeds the maximum of 8192
    rf"{_FIELD}\W{{1,4}}\d+\W{{1,3}}(?:exceeds|is (?:too large|greater|more|larger))"
    r"[^\d]{1,60}(\d+)",
)
_INCLUSIVE = re.compile("|".join(_BOUNDS), re.IGNORECASE)
# Vertex AI: a maxOutputTokens value of 64000 but the supported range is from 1 (inclusive) to 8193
# (exclusive)
_EXCLUSIVE = re.compile(
    rf"{_FIELD} value of \d+ but the supported range is from \d+ \(inclusive\) to (\d+) "
    r"\(exclusive\)",
    re.IGNORECASE,
)
# An error about an unknown field quotes a name that the caller chose.
_OF_NAMES = re.compile(r"unknown|unrecogni[sz]ed|unexpected|extra (?:inputs|fields)", re.IGNORECASE)
# No model produces less, whatever an error says.
_LEAST = 256
# Models whose bounds are stored; the least recently learnt one is evicted.
_MAX_MODELS = 1_000


class OutputBounds:
    """The largest accepted `max_tokens` of each model that has rejected a larger one.

    Attributes:
        by_model: the bounds by model, the least recently learnt one first.
    """

    def __init__(self) -> None:
        self.by_model: OrderedDict[ModelKey, int] = OrderedDict()

    def of(self, key: ModelKey, limit: int = 0) -> int:
        """Return the bound of a model, not above the configured `limit`; 0 means none."""
        bound = self.by_model.get(key, 0)
        return min(bound, limit) if bound and limit else bound or limit

    def add(self, key: ModelKey, bound: int) -> None:
        """Store the bound of a model."""
        self.by_model[key] = bound
        self.by_model.move_to_end(key)
        if len(self.by_model) > _MAX_MODELS:
            self.by_model.popitem(last=False)


def bound_in(words: str) -> int:
    """Return the bound on `max_tokens` that an error message names; 0 if it names none."""
    if _OF_NAMES.search(words):
        return 0
    bound = 0
    if match := _INCLUSIVE.search(words):
        bound = int(match[match.lastindex or 0])
    elif match := _EXCLUSIVE.search(words):
        bound = int(match[1]) - 1
    return bound if bound >= _LEAST else 0
