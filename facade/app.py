"""The routes of both listeners, and the endpoints for plain requests."""

from collections.abc import Mapping
from functools import partial

from aiohttp import hdrs

from facade.aliases import names_of, with_aliases
from facade.dispatch import Dispatcher, OperationsDispatcher
from facade.http.plain import PlainEndpoint
from facade.http.router import Endpoint, Route, Router
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

# Paths whose plain POST requests are read without aiohttp's parser.
_PLAIN: Mapping[str, Endpoint] = {
    "/beta/v1/chat/completions": chat.create,
    "/beta/v1/messages": messages.create,
    "/beta/v1/responses": responses.create,
    "/coding/v1/messages": partial(messages.create, coding=True),
    "/beta/v1/embeddings": embeddings.create,
}
_GENERATION: Mapping[str, Endpoint] = {
    **_PLAIN,
    "/beta/v1/messages/count_tokens": messages.count_tokens,
    "/coding/v1/messages/count_tokens": partial(messages.count_tokens, coding=True),
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


def create_dispatcher() -> Dispatcher:
    """Return the dispatcher of the public listener."""
    return Dispatcher(Router(with_aliases(_routes())))


def _routes() -> list[Route]:
    """Return the routes without aliases."""
    return [
        *(Route.post(path, endpoint) for path, endpoint in _GENERATION.items()),
        Route.get("/beta/v1/models", models.list_models),
        Route.get("/beta/v1/models/{name:.+}", models.get_model),
        Route.get("/coding/v1/models", models.list_models),
        Route.get("/coding/v1/models/{name:.+}", models.get_model),
        Route.post("/beta/v1/files", files.create),
        Route.get("/beta/v1/files", files.list_files),
        Route.get("/beta/v1/files/{file_id}", files.get_file),
        Route.delete("/beta/v1/files/{file_id}", files.delete),
        Route.get("/beta/v1/files/{file_id}/content", files.content),
        Route.get("/beta/v1/storage", files.storage),
        Route.get("/beta/v1/usage/me", usage.my_usage),
        *stored_responses.routes(),
        *conversations.routes(),
        *memory.routes(),
        *articles.routes(),
        *admin.routes(),
        *console_sign_in.routes(),
        *console.routes(),
        *(Route(hdrs.METH_HEAD, path, operations.base) for path in BASE_PATHS),
        Route.get("/healthz", operations.healthz),
        Route.get("/readyz", operations.readyz),
        Route.get("/openapi.json", operations.openapi_document),
        Route.get("/docs", operations.docs),
    ]


def create_operations_dispatcher() -> OperationsDispatcher:
    """Return the dispatcher of the operators' listener."""
    return OperationsDispatcher(
        Router(
            [
                Route.get("/healthz", operations.healthz),
                Route.get("/readyz", operations.readyz_with_details),
                Route.get("/metrics", operations.metrics),
            ]
        )
    )
