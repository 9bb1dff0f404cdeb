"""Estimate of the tokens of a text without a tokenizer; it errs high.

Every provider cuts text in its own way and most keep that to themselves, so this
counts kinds of UTF-8 bytes and gives each kind about the worst rate that common
tokenizers show for it. What to expect: for English prose about 1.3 to 1.6 times the
true number of OpenAI's newer tokenizers, less above those of newer Claude models,
which cut finer; for JSON and numbers up to twice; for indented code up to three
times; for Cyrillic, Chinese and Japanese up to twice. It can come out too low for
scripts that a tokenizer hardly knows (each byte a token).
The figures are rules of thumb; none was measured against a provider.
"""

from collections.abc import Callable

# Hundredths of a token for each byte of a kind: words of small letters have 3 to 5
# letters a token, capitals break words up, digits and signs often stand alone, and a
# character outside of ASCII has 2 to 4 bytes and half to two tokens.
_SMALL, _CAPITAL, _HIGH, _OTHER = 35, 70, 50, 100
_SMALL_BYTES = bytes(range(ord("a"), ord("z") + 1)) + b" \n\r\t"
_CAPITAL_BYTES = bytes(range(ord("A"), ord("Z") + 1))
_HIGH_BYTES = bytes(range(0x80, 0x100))


def estimate_tokens(text: str) -> int:
    """Guess the tokens of a text; see the module for how well."""
    return estimate_bytes(text.encode())


def longest_within(max_tokens: int, largest: int, part: Callable[[int], str]) -> str:
    """Return the largest part of a text that the tokens allow, found by bisection.

    Args:
        max_tokens: what `estimate_tokens` of the part may be.
        largest: the size of the largest part.
        part: returns the part of a size; that of size 0 is returned when no other fits.
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
    """Guess the tokens of a text in UTF-8, or in what is taken for it."""
    if not data:
        return 0
    # Deleting a kind of byte counts it at the speed of C.
    no_small = data.translate(None, _SMALL_BYTES)
    no_letter = no_small.translate(None, _CAPITAL_BYTES)
    other = len(no_letter.translate(None, _HIGH_BYTES))
    hundredths = (
        (len(data) - len(no_small)) * _SMALL
        + (len(no_small) - len(no_letter)) * _CAPITAL
        + (len(no_letter) - other) * _HIGH
        + other * _OTHER
    )
    return hundredths // 100 + 1
