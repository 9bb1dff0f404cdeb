"""Create the search backend of the settings."""

import os
from collections.abc import Mapping, Sequence

from yarl import URL

from gateway.errors.v1 import errors_pb2
from services.common import http
from services.common.errors import GatewayError
from services.common.settings import WebSearch
from services.inference.tools.backends.asking import Backend
from services.inference.tools.backends.brave import BRAVE
from services.inference.tools.backends.engine import EngineSearches
from services.inference.tools.backends.searxng import SEARXNG
from services.inference.tools.backends.tavily import TAVILY
from services.inference.tools.search import Searches, SearchResult

_ENGINES = {"brave": BRAVE, "searxng": SEARXNG, "tavily": TAVILY}


def search_backend(
    settings: WebSearch, client: http.Client, environ: Mapping[str, str] = os.environ
) -> Searches | None:
    """Return the search backend, or None if the settings name none.

    Args:
        settings: `[tools.web_search]`.
        client: shared; not closed by the backend.
        environ: environment variables, which may hold the key.
    """
    if not settings.backend:
        return None
    engine = _ENGINES[settings.backend]
    key = settings.key(environ)
    if settings.key_variable and not key:
        return _Keyless(settings)
    backend = Backend(
        settings.backend,
        _endpoint(URL(settings.url or engine.url), URL(engine.url).path),
        {engine.key_field: engine.key_value.format(key)} if key else {},
        engine.refusals,
        settings.timeout_s,
        client,
    )
    return EngineSearches(engine, backend, settings.max_results)


def _endpoint(url: URL, path: str) -> URL:
    """Return the endpoint URL of a configured URL with or without a path."""
    if url.path.endswith(path):
        return url
    base = url.path.rstrip("/")
    return url.with_path(base + path, keep_query=True)


class _Keyless:
    """A backend whose API key is missing; every search fails."""

    def __init__(self, settings: WebSearch) -> None:
        self._settings = settings

    async def search(
        self,
        query: str,
        *,
        count: int,
        allowed_domains: Sequence[str] = (),
        blocked_domains: Sequence[str] = (),
    ) -> Sequence[SearchResult]:
        raise GatewayError(
            errors_pb2.REASON_UPSTREAM_AUTH,
            f"the web search backend {self._settings.backend} has no key: "
            f"{self._settings.key_variable} is not set in the gateway's environment",
        )
