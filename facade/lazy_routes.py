"""Routes whose modules are imported on the first request to one of them."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from aiohttp import web
from aiohttp.web_urldispatcher import PrefixResource


class LazyRoutes(PrefixResource):
    """The routes below a path prefix, created on the first request to one of them.

    Args:
        prefix: the path prefix, without a trailing slash.
        routes: returns the routes, with full paths.
    """

    def __init__(self, prefix: str, routes: Callable[[], Iterable[web.AbstractRouteDef]]) -> None:
        super().__init__(prefix)
        self._routes = routes
        self._router: web.UrlDispatcher | None = None

    async def resolve(
        self, request: web.Request
    ) -> tuple[web.UrlMappingMatchInfo | None, set[str]]:
        """Return the match for a request, or None and the methods that the path allows."""
        if self._router is None:
            # In a thread: the imports take a tenth of a second.
            await asyncio.to_thread(self._router_or_create)
        match = await self._router_or_create().resolve(request)
        if match.http_exception is None:
            return match, set()
        return None, getattr(match.http_exception, "allowed_methods", set())

    def url_for(self, *args: str, **kwargs: str) -> NoReturn:
        """Raise RuntimeError: only the single routes have URLs."""
        raise RuntimeError("the URLs are those of the routes")

    def get_info(self) -> Any:
        """Return the prefix."""
        return {"prefix": self._prefix}

    def __len__(self) -> int:
        return len(self._router_or_create().routes())

    def __iter__(self) -> Iterator[web.AbstractRoute]:
        return iter(self._router_or_create().routes())

    def _router_or_create(self) -> web.UrlDispatcher:
        """Return the router of the routes; create it on the first call."""
        if self._router is None:
            router = web.UrlDispatcher()
            router.add_routes(self._routes())
            self._router = router
        return self._router
