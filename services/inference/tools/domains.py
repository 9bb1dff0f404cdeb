"""Domain rules of web search and web fetch. Pure.

A rule is a domain including its subdomains (`example.com`), or a path prefix (`example.com/blog`)
in which `*` matches any text, as in the web tools of Anthropic's and OpenAI's APIs.
"""

from collections.abc import Sequence
from typing import NamedTuple

from yarl import URL

from services.common.errors import invalid
from services.common.text.texts import quoted

_MAX_RULE = 512  # characters


class Domain(NamedTuple):
    """A domain rule.

    Attributes:
        host: in lower case and IDNA encoding.
        path: with a leading slash; "" for the whole domain.
    """

    host: str
    path: str


def domain_of(rule: str) -> Domain:
    """Parse a rule; a scheme and a leading `*.` are ignored.

    Raises:
        GatewayError: invalid_request, if it is not a domain.
    """
    text = rule.strip().removeprefix("https://").removeprefix("http://").removeprefix("*.")
    host, slash, path = text.partition("/")
    try:
        url = URL(f"http://{host}") if len(rule) <= _MAX_RULE else None
        name = url.raw_host if url is not None and url.explicit_port is None else None
    except ValueError:
        name = None
    if not name or "." not in name.strip(".") or set(host) & set("@?#* "):
        raise invalid(
            "", f"{quoted(rule)} is not a domain, such as example.com or example.com/blog"
        )
    return Domain(name.strip("."), slash + path if path else "")


def permits(url: str, allowed: Sequence[Domain], blocked: Sequence[Domain]) -> bool:
    """Return whether a URL is in no blocked domain, and in an allowed one if any are given."""
    try:
        parsed = URL(url)
        host = (parsed.raw_host or "").rstrip(".")
    except ValueError:
        return False
    if not host or any(_is_in(host, parsed.path, rule) for rule in blocked):
        return False
    return not allowed or any(_is_in(host, parsed.path, rule) for rule in allowed)


def _is_in(host: str, path: str, rule: Domain) -> bool:
    if host != rule.host and not host.endswith(f".{rule.host}"):
        return False
    return _begins(path, rule.path)


def _begins(path: str, pattern: str) -> bool:
    """Return whether a path matches a prefix pattern, in linear time."""
    first, *others = pattern.split("*")
    if not path.startswith(first):
        return False
    place = len(first)
    for part in others:
        place = path.find(part, place)
        if place < 0:
            return False
        place += len(part)
    # `/blog` matches `/blog/a` but not `/blogs`.
    return pattern.endswith(("/", "*")) or not pattern or path[place : place + 1] in ("", "/")
