"""What a caller wants of the cache: the `cache-control` of a request (RFC 9111, section 5.2.1)."""

from typing import NamedTuple

_MAX_DIGITS = 10


class CacheDirectives(NamedTuple):
    """The directives of a request that the cache heeds.

    Attributes:
        no_store: whether the cache takes no part.
        no_cache: whether a new answer is wanted, which is kept.
        max_age_s: how old an answer from the cache may be; None for as old as it keeps them.
    """

    no_store: bool = False
    no_cache: bool = False
    max_age_s: int | None = None


def parse(header: str) -> CacheDirectives:
    """Return the directives of a `cache-control`; others are ignored."""
    no_store = no_cache = False
    max_age_s = None
    for directive in header.split(","):
        name, _, value = directive.strip().partition("=")
        match name.lower():
            case "no-store":
                no_store = True
            case "no-cache":
                no_cache = True
            case "max-age":
                digits = value.strip('"')
                if digits.isascii() and digits.isdigit():
                    max_age_s = int(digits[:_MAX_DIGITS])
    return CacheDirectives(no_store, no_cache, max_age_s)
