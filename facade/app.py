"""The routes of both listeners, and the endpoints for plain requests."""

from collections.abc import Iterable, Iterator
from functools import cache, partial

from facade.aliases import names_of, route_of
from facade.dispatch import Dispatcher, OperationsDispatcher, Serve
from facade.endpoint import EndpointSpec
from facade.endpoints import ENDPOINTS, OPERATORS_ENDPOINTS
from facade.http.plain import PlainEndpoint
from facade.http.router import Route, Router
from facade.request_context import request_context


def plain_endpoints(serve: Serve = request_context) -> dict[bytes, PlainEndpoint]:
    """Return the endpoints that serve plain requests, by path; see `Dispatcher` for `serve`."""
    return {
        name.encode(): plain
        for endpoint in ENDPOINTS
        if endpoint.is_plain
        for plain in [_plain_endpoint(endpoint, serve)]
        for name in names_of(endpoint.path)
    }


def _plain_endpoint(endpoint: EndpointSpec, serve: Serve) -> PlainEndpoint:
    respond = partial(serve, handler=endpoint.handler, needs_key=True)
    return PlainEndpoint(endpoint.path, respond)


def create_dispatcher(serve: Serve = request_context) -> Dispatcher:
    """Return the dispatcher of the public listener."""
    return Dispatcher(_public_router(), serve)


def create_operations_dispatcher() -> OperationsDispatcher:
    """Return the dispatcher of the operators' listener."""
    return OperationsDispatcher(_operators_router())


@cache
def _public_router() -> Router:
    return Router(_routes(ENDPOINTS), route_of)


@cache
def _operators_router() -> Router:
    return Router(_routes(OPERATORS_ENDPOINTS))


def _routes(endpoints: Iterable[EndpointSpec]) -> Iterator[Route]:
    """Yield the routes of endpoints."""
    for endpoint in endpoints:
        yield Route(endpoint.method, endpoint.path, endpoint.handler)
