"""Brave Search (https://api-dashboard.search.brave.com/app/documentation/web-search/query)."""

from collections.abc import Sequence

from services.inference.tools.backends.asking import CHECK_KEY, Backend
from services.inference.tools.backends.engine import SearchEngine
from services.inference.tools.backends.filtering import with_sites
from services.inference.tools.domains import Domain

_MAX_COUNT = 20


async def _find(
    backend: Backend,
    query: str,
    count: int,
    allowed: Sequence[Domain],
    blocked: Sequence[Domain],
) -> object:
    answer = await backend.get(
        {
            "q": with_sites(query, allowed, blocked, BRAVE.max_characters, BRAVE.max_words),
            "count": str(_MAX_COUNT if allowed or blocked else min(count, _MAX_COUNT)),
            "result_filter": "web",
            "text_decorations": "false",
        }
    )
    web = answer.get("web")
    return web.get("results") if isinstance(web, dict) else None


BRAVE = SearchEngine(
    url="https://api.search.brave.com/res/v1/web/search",
    key_field="x-subscription-token",
    key_value="{}",
    # Brave rejects an invalid token with 422.
    refusals={401: CHECK_KEY, 403: CHECK_KEY, 422: CHECK_KEY},
    max_characters=400,
    max_words=50,
    title="title",
    text="description",
    ages=("page_age", "age"),
    find=_find,
)
