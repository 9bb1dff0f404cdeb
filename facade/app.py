"""The applications: their routes and what is around them."""

from aiohttp import web

from facade import middlewares
from facade.context import CONTEXT, Context
from facade.cors import Cors
from facade.routes import articles, chat, files, memory, messages, models, operations

# Where a POST is read and routed by the shortest way (`facade.http.plain`, `facade.http.routing`).
PLAIN_PATHS = frozenset({"/beta/v1/chat/completions", "/beta/v1/messages", "/coding/v1/messages"})


def create_app(context: Context) -> web.Application:
    """Build the application of one facade."""
    app = web.Application(middlewares=[middlewares.observe, middlewares.authenticate])
    if origins := context.settings.server.cors_origins:
        app.middlewares.insert(1, Cors(origins).handle)
    app[CONTEXT] = context
    app.on_response_prepare.append(middlewares.name_answer)
    app.add_routes(
        [
            web.post("/beta/v1/chat/completions", chat.create),
            web.post("/beta/v1/messages", messages.create),
            web.post("/beta/v1/messages/count_tokens", messages.count_tokens),
            web.post("/coding/v1/messages", messages.create_coding),
            web.post("/coding/v1/messages/count_tokens", messages.count_coding_tokens),
            web.get("/beta/v1/models", models.list_models),
            web.get("/beta/v1/models/{name:.+}", models.get_model),
            web.get("/coding/v1/models", models.list_models),
            web.get("/coding/v1/models/{name:.+}", models.get_model),
            web.post("/beta/v1/files", files.create),
            web.get("/beta/v1/files", files.list_files),
            web.get("/beta/v1/files/{file_id}", files.get_file),
            web.delete("/beta/v1/files/{file_id}", files.delete),
            web.get("/beta/v1/files/{file_id}/content", files.content),
            *memory.routes(),
            *articles.routes(),
            *(web.head(path, operations.base) for path in middlewares.BASE_PATHS),
            web.get("/healthz", operations.healthz),
            web.get("/readyz", operations.readyz),
            web.get("/openapi.json", operations.openapi_document),
            web.get("/docs", operations.docs),
        ]
    )
    return app


def create_operations_app(context: Context) -> web.Application:
    """Build the application of the listener for whoever runs the gateway."""
    app = web.Application(middlewares=[middlewares.observe])
    app[CONTEXT] = context
    app.on_response_prepare.append(middlewares.name_answer)
    app.add_routes(
        [
            web.get("/healthz", operations.healthz),
            web.get("/readyz", operations.readyz_with_details),
            web.get("/metrics", operations.metrics),
        ]
    )
    return app
