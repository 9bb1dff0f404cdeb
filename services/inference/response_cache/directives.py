"""Cache directives: the `cache-control` header of a request (RFC 9111, section 5.2.1)."""

from typing import NamedTuple

_MAX_DIGITS = 10


class CacheDirectives(NamedTuple):
    """The supported cache directives of a request.

    Attributes:
        no_store: whether the cache is neither read nor written.
        no_cache: whether the cache is not read; the new answer is stored.
        max_age_s: maximum age of a cached answer in seconds; None for that of the settings.
    """

    no_store: bool = False
    no_cache: bool = False
    max_age_s: int | None = None


def parse(header: str) -> CacheDirectives:
    """Parse a `cache-control` header; unsupported directives are ignored."""
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
                if digits.isascii() and digits.isdecimal():
                    max_age_s = int(digits[:_MAX_DIGITS])
    return CacheDirectives(no_store, no_cache, max_age_s)
