"""The aiohttp applications: their routes and middlewares; the endpoints for plain requests."""

from collections.abc import Mapping
from functools import partial

from aiohttp import web

from facade import middlewares
from facade.aliases import names_of, with_aliases
from facade.context import CONTEXT, Context
from facade.http.plain import PlainEndpoint
from facade.lazy_endpoint import LazyEndpoint
from facade.lazy_routes import LazyRoutes
from facade.middlewares import Endpoint, as_handler
from facade.public_paths import BASE_PATHS
from facade.request_context import request_context
from facade.routes import (
    admin,
    articles,
    chat,
    console,
    console_sign_in,
    conversations,
    embeddings,
    files,
    memory,
    messages,
    models,
    operations,
    responses,
    stored_responses,
    usage,
)

_MESSAGES = "facade.dialects.anthropic"
_RESPONSES = "facade.dialects.responses"
# Paths whose plain POST requests are served without aiohttp.
_PLAIN: Mapping[str, Endpoint] = {
    "/beta/v1/chat/completions": chat.create,
    "/beta/v1/messages": LazyEndpoint(_MESSAGES, messages.create),
    "/beta/v1/responses": LazyEndpoint(_RESPONSES, responses.create),
    "/coding/v1/messages": LazyEndpoint(_MESSAGES, partial(messages.create, coding=True)),
    "/beta/v1/embeddings": embeddings.create,
}
_GENERATION: Mapping[str, Endpoint] = {
    **_PLAIN,
    "/beta/v1/messages/count_tokens": LazyEndpoint(_MESSAGES, messages.count_tokens),
    "/coding/v1/messages/count_tokens": LazyEndpoint(
        _MESSAGES, partial(messages.count_tokens, coding=True)
    ),
}


def plain_endpoints() -> dict[bytes, PlainEndpoint]:
    """Return the endpoints that serve plain requests, by path."""
    endpoints = {
        path: PlainEndpoint(path, partial(request_context, handler=endpoint, needs_key=True))
        for path, endpoint in _PLAIN.items()
    }
    return {
        name.encode(): endpoint for path, endpoint in endpoints.items() for name in names_of(path)
    }


def create_app(context: Context) -> web.Application:
    """Build the application of one facade."""
    app = web.Application(
        middlewares=[
            middlewares.in_request_context,
            middlewares.answer_preflights,
            middlewares.authenticated,
        ]
    )
    app[CONTEXT] = context
    app.on_response_prepare.append(middlewares.name_response)
    app.add_routes([*with_aliases(_routes())])
    # Created on first use: their endpoint tables import the wire types, and few gateways use them.
    app.router.register_resource(LazyRoutes("/article/v1", lambda: articles.routes()))
    app.router.register_resource(LazyRoutes("/admin/v1", lambda: admin.routes()))
    return app


def _routes() -> list[web.RouteDef]:
    """Return the routes without aliases, except those of document editing and administration."""
    return [
        *(web.post(path, as_handler(endpoint)) for path, endpoint in _GENERATION.items()),
        web.get("/beta/v1/models", models.list_models),
        web.get("/beta/v1/models/{name:.+}", models.get_model),
        web.get("/coding/v1/models", models.list_models),
        web.get("/coding/v1/models/{name:.+}", models.get_model),
        web.post("/beta/v1/files", files.create),
        web.get("/beta/v1/files", files.list_files),
        web.get("/beta/v1/files/{file_id}", files.get_file),
        web.delete("/beta/v1/files/{file_id}", files.delete),
        web.get("/beta/v1/files/{file_id}/content", files.content),
        web.get("/beta/v1/storage", files.storage),
        web.get("/beta/v1/usage/me", usage.my_usage),
        *stored_responses.routes(),
        *conversations.routes(),
        *memory.routes(),
        *console_sign_in.routes(),
        *console.routes(),
        *(web.head(path, operations.base) for path in BASE_PATHS),
        web.get("/healthz", operations.healthz),
        web.get("/readyz", operations.readyz),
        web.get("/openapi.json", operations.openapi_document),
        web.get("/docs", operations.docs),
    ]


def create_operations_app(context: Context) -> web.Application:
    """Build the application of the operators' listener."""
    app = web.Application(middlewares=[middlewares.in_request_context])
    app[CONTEXT] = context
    app.on_response_prepare.append(middlewares.name_response)
    app.add_routes(
        [
            web.get("/healthz", operations.healthz),
            web.get("/readyz", operations.readyz_with_details),
            web.get("/metrics", operations.metrics),
        ]
    )
    return app
