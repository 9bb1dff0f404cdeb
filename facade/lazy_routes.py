"""Routes whose modules are imported on the first request to one of them."""

import asyncio
from collections.abc import Callable, Iterable

from facade.http.router import Route, Router


class LazyRoutes:
    """The routes below a path prefix, created on the first request to one of them.

    Args:
        prefix: the path prefix, without a trailing slash.
        routes: returns the routes, with full paths.
    """

    def __init__(self, prefix: str, routes: Callable[[], Iterable[Route]]) -> None:
        self._prefix = f"{prefix}/"
        self._routes = routes
        self._router: Router | None = None

    def contains(self, path: str) -> bool:
        """Return whether a path is below the prefix."""
        return path.startswith(self._prefix)

    async def router(self) -> Router:
        """Return the routes; the first call creates them."""
        if self._router is None:
            # In a thread: the imports take a tenth of a second.
            self._router = await asyncio.to_thread(lambda: Router(self._routes()))
        return self._router
