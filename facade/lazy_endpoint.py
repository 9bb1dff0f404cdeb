"""Endpoints whose modules are imported on their first request."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from facade.http.exchange import Exchange
from services.common.imports import import_eagerly

ResponseT = TypeVar("ResponseT")


class LazyEndpoint(Generic[ResponseT]):
    """An endpoint whose module is imported in a thread, before the first request is handled.

    On the event loop the import would block all other requests for a twentieth of a second.

    Args:
        module: name of the module.
        endpoint: the endpoint itself.
    """

    def __init__(self, module: str, endpoint: Callable[[Exchange], Awaitable[ResponseT]]) -> None:
        self._module = module
        self._endpoint = endpoint
        self._is_imported = False

    def __call__(self, exchange: Exchange) -> Awaitable[ResponseT]:
        """Handle a request."""
        return self._endpoint(exchange) if self._is_imported else self._import_first(exchange)

    async def _import_first(self, exchange: Exchange) -> ResponseT:
        await asyncio.to_thread(import_eagerly, self._module)
        self._is_imported = True
        return await self._endpoint(exchange)
