"""CORS headers, for web pages of other origins (the Fetch standard, section 3.3).

Disabled unless the operator configures origins. The gateway uses no cookies: pages send an API key,
and credentials of the browser are not allowed.
"""

import re
from collections.abc import Collection

from aiohttp import hdrs

_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
# Request headers allowed for pages, beside those that are always allowed.
_ALLOWED = frozenset(
    {
        *("accept", "authorization", "cache-control", "compat-version", "content-type"),
        *("idempotency-key", "if-match", "if-none-match", "if-range", "range", "user-agent"),
        *("x-api-key", "x-goog-api-key", "x-http-method-override", "x-request-id"),
    }
)
_ALLOWED_FAMILIES = ("anthropic-", "openai-", "tus-", "upload-", "x-goog-", "x-stainless-")
_LIMITS = ("limit", "remaining", "reset")
# Response headers readable by pages, beside those that are always readable.
EXPOSED = (
    *("x-request-id", "request-id", "retry-after", "x-should-retry", "x-gateway-model"),
    *("x-gateway-provider", "x-gateway-deployment", "x-gateway-step", "x-gateway-attempts"),
    *("x-gateway-failed-attempts", "x-gateway-dropped", "x-gateway-cache", "age"),
    *("x-gateway-adapted", "x-gateway-budget-remaining-usd", "x-gateway-budget-reset"),
    *("x-gateway-estimate", "x-memory-truncated", "accept-ranges", "content-disposition"),
    *("content-range", "etag", "x-upstream-request-id", "openai-processing-ms"),
    "openai-poll-after-ms",
    # Uploads in Google's protocol, and in tus.
    *("x-goog-upload-url", "x-goog-upload-status", "x-goog-upload-size-received"),
    *("location", "tus-resumable", "tus-version", "tus-extension", "tus-max-size"),
    *("tus-checksum-algorithm", "upload-offset", "upload-length", "upload-metadata"),
    *("upload-expires", "x-gateway-file-id", "x-gateway-page-count"),
    # Rate limit headers sent by most providers.
    *(f"x-ratelimit-{what}-{of}" for what in _LIMITS for of in ("requests", "tokens")),
    *(f"anthropic-ratelimit-{of}-{what}" for what in _LIMITS for of in ("requests", "tokens")),
)
_MAX_AGE_S = 7200  # seconds; the longest time that browsers cache
_TOKEN = re.compile(r"[a-z0-9_.-]{1,100}", re.ASCII)
_MAX_ASKED = 100  # maximum header names in a preflight


class Cors:
    """Builds the headers that let pages of the allowed origins read responses.

    Args:
        origins: as browsers send them, such as `https://app.example`; `*` is any.
    """

    def __init__(self, origins: Collection[str]) -> None:
        self._any = "*" in origins
        exposed: dict[str, str] = {hdrs.ACCESS_CONTROL_EXPOSE_HEADERS: ", ".join(EXPOSED)}
        # A cached response for one origin must not be used for another.
        vary: dict[str, str] = {} if self._any else {hdrs.VARY: hdrs.ORIGIN}
        self._of_origin: dict[str, dict[str, str]] = {
            origin: {hdrs.ACCESS_CONTROL_ALLOW_ORIGIN: origin, **exposed, **vary}
            for origin in origins
        }
        self._others: dict[str, str] = self._of_origin["*"] if self._any else vary

    def headers(self, origin: str) -> dict[str, str]:
        """Return the headers of a response to a page of `origin`, or to any other client if it is
        "".
        """
        return self._others if self._any else self._of_origin.get(origin, self._others)

    def preflight(self, origin: str, requested: str) -> dict[str, str] | None:
        """Return the headers of a preflight response, None if the origin is not allowed.

        Args:
            origin: the page's origin.
            requested: names of the headers to be sent.
        """
        if hdrs.ACCESS_CONTROL_ALLOW_ORIGIN not in self.headers(origin):
            return None
        return {
            hdrs.ACCESS_CONTROL_ALLOW_METHODS: _METHODS,
            hdrs.ACCESS_CONTROL_ALLOW_HEADERS: ", ".join(_allowed(requested)),
            hdrs.ACCESS_CONTROL_MAX_AGE: str(_MAX_AGE_S),
        }


def _allowed(requested: str) -> list[str]:
    """Return the allowed headers; those of a family only if requested."""
    names = (name.strip().lower() for name in requested.split(",")[:_MAX_ASKED])
    more = {name for name in names if name.startswith(_ALLOWED_FAMILIES) and _TOKEN.fullmatch(name)}
    return sorted(_ALLOWED | more)
