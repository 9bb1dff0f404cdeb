"""Domain operators in queries, and cleaned search results. Pure."""

import html
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

from services.common.errors import invalid
from services.common.text.texts import cut
from services.inference.tools.domains import Domain
from services.inference.tools.search import SearchResult

_MAX_URL = 2_048
_MAX_TITLE, _MAX_TEXT, _MAX_AGE = 300, 2_000, 64
# Markup of matched words; other angle brackets are text.
_MARKUP = re.compile(r"</?(?:strong|b|em|i|mark|span)(?:\s[^<>]*)?>", re.IGNORECASE)


def checked_query(query: str, max_characters: int, max_words: int) -> str:
    """Return a query with normalized white space.

    Raises:
        GatewayError: invalid_request, if it is empty or too long for the backend.
    """
    words = query.split()
    joined = " ".join(words)
    if not words or len(joined) > max_characters or len(words) > max_words:
        raise invalid(
            "",
            f"a web search must have 1 to {max_characters} characters and at most {max_words} "
            "words",
        )
    return joined


def with_sites(
    query: str,
    allowed: Sequence[Domain],
    blocked: Sequence[Domain],
    max_characters: int,
    max_words: int,
) -> str:
    """Return a query with domain operators, which search engines share.

    Allowed domains are included all or none, as some alone would exclude results; blocked domains
    as many as fit. Results are filtered afterwards in any case.
    """
    hosts = dict.fromkeys(domain.host for domain in allowed)
    named = query
    if hosts:
        sites = " OR ".join(f"site:{host}" for host in hosts)
        named = f"{query} ({sites})" if len(hosts) > 1 else f"{query} {sites}"
    if len(named) > max_characters or len(named.split()) > max_words:
        named = query
    for domain in blocked:
        longer = f"{named} -site:{domain.host}"
        # Rules with a path are left to the filter, as no operator supports paths.
        if domain.path or len(longer) > max_characters or len(longer.split()) > max_words:
            continue
        named = longer
    return named


def results(
    items: object,
    texts: Callable[[Mapping[str, Any]], tuple[object, object, object]],
    is_permitted: Callable[[str], bool],
    count: int,
) -> list[SearchResult]:
    """Return the valid and permitted results of a backend's response, without duplicate URLs.

    Args:
        items: the response's list of results, unchecked.
        texts: returns the title, text and age of a result.
        is_permitted: returns whether a URL is permitted.
        count: maximum results.
    """
    kept: dict[str, SearchResult] = {}
    for item in items if isinstance(items, list) else ():
        url = item.get("url") if isinstance(item, dict) else None
        if _is_address(url) and url not in kept and is_permitted(url):
            title, text, age = map(_plain, texts(item))
            kept[url] = SearchResult(
                url, cut(title, _MAX_TITLE), cut(text, _MAX_TEXT), cut(age, _MAX_AGE)
            )
            if len(kept) == count:
                break
    return list(kept.values())


def _is_address(value: object) -> TypeGuard[str]:
    return (
        isinstance(value, str)
        and value.startswith(("http://", "https://"))
        and len(value) <= _MAX_URL
        and value.isprintable()
        and " " not in value
    )


def _plain(value: object) -> str:
    """Return text without markup, with which some backends highlight matched words."""
    if not isinstance(value, str):
        return ""
    return " ".join(html.unescape(_MARKUP.sub("", value)).split())
