"""Requests whose path decides everything, and which are not routed one by one."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from aiohttp import hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion, RawRequestMessage
from aiohttp.streams import StreamReader
from multidict import CIMultiDictProxy

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Route:
    """Where every POST to one path goes.

    Attributes:
        name: the path.
        app: the application.
        match_info: what aiohttp's router finds, once and for all.
        handler: the handler with the middlewares of the application around it.
    """

    name: str
    app: web.Application
    match_info: web.UrlMappingMatchInfo
    handler: Handler


def routes_of(app: web.Application, paths: Collection[str]) -> dict[str, Route]:
    """Return the routes by which an application answers a POST to each of `paths`."""
    found = {}
    for resource in app.router.resources():
        for route in resource:
            if resource.canonical in paths and route.method == hdrs.METH_POST:
                match_info = web.UrlMappingMatchInfo({}, route)
                match_info.add_app(app)
                match_info.freeze()
                handler: Handler = route.handler
                for middleware in reversed(app.middlewares):
                    handler = partial(middleware, handler=handler)
                found[resource.canonical] = Route(resource.canonical, app, match_info, handler)
    return found


class RoutedRequest(web.Request):
    """A request that has its route.

    What is a method or a property of `web.Request` is an attribute here: each call of one
    takes its time, and a request needs dozens.
    """

    __slots__ = (
        "app",
        "content",
        "headers",
        "keep_alive",
        "match_info",
        "method",
        "path",
        "protocol",
        "route",
        "version",
        "writer",
    )

    # Those that may be set, where aiohttp is debugged.
    ATTRS = web.Request.ATTRS | frozenset(__slots__)

    app: web.Application
    content: StreamReader
    headers: CIMultiDictProxy[str]
    keep_alive: bool
    match_info: web.UrlMappingMatchInfo
    method: str
    path: str
    protocol: web.RequestHandler
    route: Route
    version: HttpVersion
    writer: AbstractStreamWriter

    def __init__(
        self,
        route: Route,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: Any,
    ) -> None:
        super().__init__(message, payload, protocol, writer, task, task.get_loop())
        self._match_info = self.match_info = route.match_info
        self.app = route.app
        self.content = payload
        self.headers = message.headers
        self.keep_alive = not message.should_close
        self.method = message.method
        self.path = message.path
        self.protocol = protocol
        self.route = route
        self.version = message.version
        self.writer = writer

    def __contains__(self, key: object) -> bool:
        return key in self._state


def dispatch(server: web.Server, routes: Mapping[str, Route]) -> None:
    """Have a server make `RoutedRequest`s of the requests that have a route, and serve them."""
    make, serve = server.request_factory, server.request_handler

    def make_request(
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: Any,
    ) -> web.BaseRequest:
        route = routes.get(message.path)
        if route is None or message.method != hdrs.METH_POST or hdrs.EXPECT in message.headers:
            return make(message, payload, protocol, writer, task)
        return RoutedRequest(route, message, payload, protocol, writer, task)

    def serve_request(request: web.BaseRequest) -> Awaitable[web.StreamResponse]:
        if isinstance(request, RoutedRequest):
            return request.route.handler(request)
        return serve(request)

    server.request_factory = make_request
    server.request_handler = serve_request
