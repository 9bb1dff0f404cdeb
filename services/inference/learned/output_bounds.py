"""Learn how many output tokens a model can produce, from its provider's error responses.

A provider that rejects `max_tokens` as too large names the bound. The request is repeated with the
bound, and later requests to that model do not exceed it. A server that counts `max_tokens` as part
of the context names the tokens of the prompt: this request alone is repeated with what they leave.
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
_MANY = r"(?P<prompt>\d+)"
_LIMIT = r"(?P<limit>\d+)"
# Refusals of a prompt and `max_tokens` that exceed the context together. Each has the groups
# `limit`, and `prompt` or both `total` and `output`.
_TOGETHER = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # OpenAI, vLLM: maximum context length is 8192 tokens. However, you requested 9000 tokens
        # (1000 in the messages, 8000 in the completion). OpenRouter: about 9000 tokens (1000 of
        # text input, 8000 in the output)
        rf"maximum context length (?:is|of) {_LIMIT} tokens\. However, you requested (?:about )?"
        r"(?P<total>\d+) tokens \(.{0,120}?(?P<output>\d{1,12}) in the (?:completion|output)\)",
        # newer vLLM: you requested 8000 output tokens and your prompt contains 1000 input tokens
        rf"maximum context length is {_LIMIT} tokens\. However, you requested (?P<output>\d+) "
        rf"output tokens and your prompt contains (?P<least>at least )?{_MANY} input tokens",
        # vLLM: is too large: 8192. This model's maximum context length is 8192 tokens and your
        # request has 13 input tokens
        rf"maximum context length is {_LIMIT} tokens and your request has {_MANY} input tokens",
        # SGLang: You requested a total of 9000 tokens: 1000 tokens from the input messages and
        # 8000 tokens for the completion
        rf"maximum context length of {_LIMIT} tokens\. You requested a total of \d+ tokens: "
        rf"{_MANY} tokens from the input",
        # Text Generation Inference: must be <= 4096. Given: 100 `inputs` tokens and 4000
        rf"must be <= {_LIMIT}\. Given: {_MANY} `?inputs`? tokens",
        # Anthropic: input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000
        rf"`?max_tokens`? exceed context limit: {_MANY} \+ \d+ > {_LIMIT}",
    )
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


def room_in(words: str) -> int:
    """Return the output tokens for which an error message leaves room in the context, or 0.

    It is 0 for a prompt that is too long by itself, or leaves too little.
    """
    counts_match = next((match for one in _TOGETHER if (match := one.search(words))), None)
    if counts_match is None:
        return 0
    counts = counts_match.groupdict()
    output, limit = int(counts.get("output") or 0), int(counts["limit"])
    if counts.get("least"):
        # The prompt was not counted to its end.
        return output // 2 if output // 2 >= _LEAST else 0
    prompt = int(counts.get("prompt") or int(counts.get("total") or 0) - output)
    room = limit - prompt
    if "about" in counts_match[0]:
        room -= limit // 100
    return room if room >= _LEAST else 0
