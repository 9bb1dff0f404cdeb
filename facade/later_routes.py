"""Routes whose modules are imported with the first request to one of them."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from aiohttp import web
from aiohttp.web_urldispatcher import PrefixResource


class LaterRoutes(PrefixResource):
    """All routes below a path, which are made when the first request comes for one of them.

    Args:
        prefix: their path, without a slash at its end.
        routes: returns the routes, with their whole paths.
    """

    def __init__(self, prefix: str, routes: Callable[[], Iterable[web.AbstractRouteDef]]) -> None:
        super().__init__(prefix)
        self._routes = routes
        self._router: web.UrlDispatcher | None = None

    async def resolve(
        self, request: web.Request
    ) -> tuple[web.UrlMappingMatchInfo | None, set[str]]:
        """Return the route of a request, and the methods that its path takes if there is none."""
        if self._router is None:
            # Not on the event loop: imports take a tenth of a second.
            self._router = await asyncio.to_thread(self._make_router)
        match = await self._router.resolve(request)
        if match.http_exception is None:
            return match, set()
        return None, getattr(match.http_exception, "allowed_methods", set())

    def url_for(self, *args: str, **kwargs: str) -> NoReturn:
        """Raise RuntimeError: the routes have the URLs."""
        raise RuntimeError("the URLs are those of the routes")

    def get_info(self) -> Any:
        """Return the prefix."""
        return {"prefix": self._prefix}

    def __len__(self) -> int:
        return 0 if self._router is None else len(self._router.routes())

    def __iter__(self) -> Iterator[web.AbstractRoute]:
        return iter(() if self._router is None else self._router.routes())

    def _make_router(self) -> web.UrlDispatcher:
        router = web.UrlDispatcher()
        router.add_routes(self._routes())
        return router
