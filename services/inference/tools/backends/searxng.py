"""SearXNG (https://docs.searxng.org/dev/search_api.html)."""

from collections.abc import Sequence

from gateway.errors.v1 import errors_pb2
from services.inference.tools.backends.asking import CHECK_KEY, Backend
from services.inference.tools.backends.engine import SearchEngine
from services.inference.tools.backends.filtering import with_sites
from services.inference.tools.domains import Domain


async def _find(
    backend: Backend,
    query: str,
    count: int,
    allowed: Sequence[Domain],
    blocked: Sequence[Domain],
) -> object:
    asked = with_sites(query, allowed, blocked, SEARXNG.max_characters, SEARXNG.max_words)
    answer = await backend.get({"q": asked, "format": "json"})
    results = answer.get("results")
    if not results and answer.get("unresponsive_engines"):
        raise backend.failure(
            errors_pb2.REASON_UPSTREAM_ERROR,
            "found nothing, because its search engines did not answer",
        )
    return results


SEARXNG = SearchEngine(
    url="/search",
    # For a reverse proxy; SearXNG itself has no keys.
    key_field="authorization",
    key_value="Bearer {}",
    refusals={401: CHECK_KEY, 403: "that its search.formats contains json, and its limiter"},
    # SearXNG has no limit; the engines that it queries have.
    max_characters=1_000,
    max_words=150,
    title="title",
    text="content",
    ages=("publishedDate",),
    find=_find,
)
