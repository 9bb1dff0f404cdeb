"""Which addresses of the web a tool may read: lists of hosts, with a path where wanted. Pure.

As Anthropic's web search tool has it: a host stands for the hosts below it too, and a path for
the paths below it.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit


def is_allowed(url: str, allowed: Sequence[str], blocked: Sequence[str]) -> bool:
    """Return whether an address may be read; without any list every one may."""
    place = _place(url)
    if place is None:
        return False
    if allowed and not any(_covers(domain, place) for domain in allowed):
        return False
    return not any(_covers(domain, place) for domain in blocked)


def _place(url: str) -> tuple[str, str] | None:
    """Return the host and the path of an http or https address, None of any other text."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host:
        return None
    return host.rstrip("."), parts.path or "/"


def _covers(domain: str, place: tuple[str, str]) -> bool:
    domain = domain.strip().lower().removeprefix("https://").removeprefix("http://")
    named, _, path = domain.partition("/")
    named = named.removeprefix("*.").rstrip(".")
    host, at = place
    if not named or not (host == named or host.endswith(f".{named}")):
        return False
    path = path.rstrip("/")
    at = at.lower()
    return not path or at == f"/{path}" or at.startswith(f"/{path}/")
