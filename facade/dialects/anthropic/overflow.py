"""The error message for a prompt that is too long, in the form that Anthropic's clients parse.
Pure.

Coding agents shorten a conversation when an error says "prompt is too long"; some parse the two
numbers after it.
"""

import re

_IS_TOLD = re.compile(
    r"prompt is too long: \d+ tokens > \d+ maximum"
    # A different error known to clients: the prompt fits with a smaller `max_tokens`.
    r"|input length and `max_tokens` exceed context limit",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.,-])\d{1,9}(?:,\d{3})*(?![\w-])")
_LIMIT = re.compile(
    r"(?:(?:context|prompt|model|input) (?:length|limit|size|window)|tokens allowed|supports up to"
    r"|limit|at most|must be <=|cannot exceed)\b[^\d\n]{0,20}(\d[\d,]{0,14})"
    r"|(\d[\d,]{0,14})(?: tokens?)? maximum context length",
    re.IGNORECASE,
)


def overflow_message(words: str) -> str:
    """Convert a provider's message to the error message for a prompt that is too long.

    The result starts with "prompt is too long", followed by ": N tokens > M maximum" if the
    provider's message has both numbers.
    """
    if _IS_TOLD.search(words):
        return words
    match = _LIMIT.search(words)
    if match is not None:
        most = _value(match[1] or match[2])
        sizes = (_value(number[0]) for number in _NUMBER.finditer(words))
        size = next((size for size in sizes if size > most), None)
        if size is not None:
            return f"prompt is too long: {size} tokens > {most} maximum ({words})"
    return f"prompt is too long ({words})"


def _value(digits: str) -> int:
    return int(digits.replace(",", ""))
