"""Headers for pages of other origins (CORS, the Fetch standard, section 3.3).

Off unless the operator names origins. The gateway knows no cookies: a page sends an API key of
its own, and is never told that it may send credentials of the browser's.
"""

import re
from collections.abc import Collection

from aiohttp import hdrs

_METHODS = "GET, HEAD, POST, DELETE"
# What pages may send beside what browsers let pass by themselves.
_ALLOWED = frozenset(
    {
        *("accept", "authorization", "cache-control", "compat-version", "content-type"),
        *("idempotency-key", "if-match", "if-none-match", "if-range", "range", "user-agent"),
        *("x-api-key", "x-request-id"),
    }
)
_ALLOWED_FAMILIES = ("anthropic-", "openai-", "x-stainless-")
_LIMITS = ("limit", "remaining", "reset")
# What pages may read beside what browsers let them read by themselves.
EXPOSED = (
    *("x-request-id", "request-id", "retry-after", "x-should-retry", "x-gateway-model"),
    *("x-gateway-provider", "x-gateway-step", "x-gateway-attempts", "x-gateway-dropped"),
    "x-gateway-adapted",
    *("x-gateway-estimate", "x-memory-truncated", "accept-ranges", "content-disposition"),
    *("content-range", "etag", "x-upstream-request-id", "openai-processing-ms"),
    # The rate limits that most providers tell; there are more.
    *(f"x-ratelimit-{what}-{of}" for what in _LIMITS for of in ("requests", "tokens")),
    *(f"anthropic-ratelimit-{of}-{what}" for what in _LIMITS for of in ("requests", "tokens")),
)
_MAX_AGE_S = 7200  # more is not remembered by any browser but one
_TOKEN = re.compile(r"[a-z0-9_.-]{1,100}", re.ASCII)
_MAX_ASKED = 100  # names of headers in a preflight that are looked at


class Cors:
    """The headers by which pages of some origins may read answers.

    Args:
        origins: as browsers send them, such as `https://app.example`; `*` is any.
    """

    def __init__(self, origins: Collection[str]) -> None:
        self._any = "*" in origins
        exposed: dict[str, str] = {hdrs.ACCESS_CONTROL_EXPOSE_HEADERS: ", ".join(EXPOSED)}
        # A cache that holds the answer to one origin must not give it to another.
        vary: dict[str, str] = {} if self._any else {hdrs.VARY: hdrs.ORIGIN}
        self._of_origin: dict[str, dict[str, str]] = {
            origin: {hdrs.ACCESS_CONTROL_ALLOW_ORIGIN: origin, **exposed, **vary}
            for origin in origins
        }
        self._others: dict[str, str] = self._of_origin["*"] if self._any else vary

    def headers(self, origin: str) -> dict[str, str]:
        """Return what stands in every answer to a page of `origin`, or to no page if it is ""."""
        return self._others if self._any else self._of_origin.get(origin, self._others)

    def preflight(self, origin: str, asked: str) -> dict[str, str] | None:
        """Return the headers that answer a preflight, None where the origin is not allowed.

        Args:
            origin: of the page.
            asked: names of the headers that the page wants to send.
        """
        if hdrs.ACCESS_CONTROL_ALLOW_ORIGIN not in self.headers(origin):
            return None
        return {
            hdrs.ACCESS_CONTROL_ALLOW_METHODS: _METHODS,
            hdrs.ACCESS_CONTROL_ALLOW_HEADERS: ", ".join(_allowed(asked)),
            hdrs.ACCESS_CONTROL_MAX_AGE: str(_MAX_AGE_S),
        }


def _allowed(asked: str) -> list[str]:
    """Return the headers that a page may send, those of a family as far as it asks for them."""
    names = (name.strip().lower() for name in asked.split(",")[:_MAX_ASKED])
    more = {name for name in names if name.startswith(_ALLOWED_FAMILIES) and _TOKEN.fullmatch(name)}
    return sorted(_ALLOWED | more)
