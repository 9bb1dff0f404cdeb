"""Tavily (https://docs.tavily.com/documentation/api-reference/endpoint/search)."""

from collections.abc import Sequence
from typing import Any

from services.inference.tools.backends.asking import CHECK_KEY, Backend
from services.inference.tools.backends.engine import SearchEngine
from services.inference.tools.domains import Domain

_MAX_COUNT = 20
_MAX_INCLUDED, _MAX_EXCLUDED = 300, 150
_CHECK_PLAN = "the remaining quota of its plan"


async def _find(
    backend: Backend,
    query: str,
    count: int,
    allowed: Sequence[Domain],
    blocked: Sequence[Domain],
) -> object:
    # Rules with a path, and domains beyond Tavily's limits, are left to the filter.
    has_paths = any(domain.path for domain in (*allowed, *blocked))
    included = list(dict.fromkeys(domain.host for domain in allowed))
    excluded = list(dict.fromkeys(domain.host for domain in blocked if not domain.path))
    body: dict[str, Any] = {
        "query": query,
        "max_results": _MAX_COUNT if has_paths else min(count, _MAX_COUNT),
    }
    if 0 < len(included) <= _MAX_INCLUDED:
        body["include_domains"] = included
    if excluded:
        body["exclude_domains"] = excluded[:_MAX_EXCLUDED]
    return (await backend.post(body)).get("results")


TAVILY = SearchEngine(
    url="https://api.tavily.com/search",
    key_field="authorization",
    key_value="Bearer {}",
    refusals={401: CHECK_KEY, 403: CHECK_KEY, 432: _CHECK_PLAN, 433: _CHECK_PLAN},
    max_characters=400,
    max_words=400,
    title="title",
    text="content",
    ages=("published_date",),
    find=_find,
)
