"""Estimate of the number of tokens in a text without a tokenizer; it errs high.

Providers have different tokenizers, and most are not public. The estimate therefore counts UTF-8
bytes by kind, and assumes for each kind about the worst rate of common tokenizers. Expected
results: for English prose, about 1.3 to 1.6 times the true number of OpenAI's newer tokenizers, and
a smaller factor for newer Claude models, whose tokens are shorter; for JSON and numbers up to
twice; for indented code up to three times; for Cyrillic, Chinese and Japanese up to twice. The
estimate can be too low for scripts that a tokenizer hardly knows (one token per byte). The figures
are rules of thumb; none was measured against a provider.
"""

from collections.abc import Callable

# Hundredths of a token per byte of each kind: lower-case words have 3 to 5 letters per token,
# capitals split words, digits and punctuation are often single tokens, and a non-ASCII character
# has 2 to 4 bytes and half to two tokens.
_SMALL, _CAPITAL, _HIGH, _OTHER = 35, 70, 50, 100
_SMALL_BYTES = bytes(range(ord("a"), ord("z") + 1)) + b" \n\r\t"
_CAPITAL_BYTES = bytes(range(ord("A"), ord("Z") + 1))
_HIGH_BYTES = bytes(range(0x80, 0x100))
_PIECE = 1 << 20


def estimate_tokens(text: str) -> int:
    """Return an estimate of the tokens of a text; see the module for its accuracy."""
    return estimate_bytes(text.encode())


def longest_within(max_tokens: int, largest: int, part: Callable[[int], str]) -> str:
    """Return the largest part of a text within a number of tokens, found by bisection.

    Args:
        max_tokens: maximum of `estimate_tokens` for the part.
        largest: size of the largest part.
        part: returns the part of a given size; the part of size 0 is returned if no other fits.
    """
    low, high = 0, largest
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_tokens(part(middle)) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return part(low)


def estimate_bytes(data: bytes) -> int:
    """Return an estimate of the tokens of bytes that are assumed to be UTF-8 text."""
    if not data:
        return 0
    if len(data) > _PIECE:
        # In pieces, as the event loop waits for each call of a thread.
        pieces = range(0, len(data), _PIECE)
        return sum([estimate_bytes(data[begin : begin + _PIECE]) for begin in pieces])
    # Deleting a kind of byte counts it at the speed of C.
    no_small = data.translate(None, _SMALL_BYTES)
    no_letter = no_small.translate(None, _CAPITAL_BYTES)
    other_count = len(no_letter.translate(None, _HIGH_BYTES))
    hundredths = (
        (len(data) - len(no_small)) * _SMALL
        + (len(no_small) - len(no_letter)) * _CAPITAL
        + (len(no_letter) - other_count) * _HIGH
        + other_count * _OTHER
    )
    return hundredths // 100 + 1
