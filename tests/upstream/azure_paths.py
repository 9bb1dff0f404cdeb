"""The paths of Azure: OpenAI's API below `/openai/v1`, deployments, and Anthropic's in Foundry.

Source: https://learn.microsoft.com/azure/ai-foundry/openai/reference
"""

from collections.abc import Mapping

from aiohttp import web

from services.sandbox.dialects import Dialect
from services.sandbox.handlers import Handler, Server
from services.sandbox.model.models import LISTED
from tests.upstream.vertex.tokens import Tokens

KEY = "a key of a resource of Azure"
API_VERSION = "2024-10-21"
_NO_ACCESS = (
    "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a "
    "valid key for an active subscription and use a correct regional API endpoint for your "
    "resource."
)
_DEPLOYMENT = "/openai/deployments/{model:[^/]+}"


class _Admitted:
    """A dialect whose credentials were checked before."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def __getattr__(self, name: str) -> object:
        return getattr(self._dialect, name)

    def authenticate(self, headers: Mapping[str, str]) -> None:
        """Do nothing."""


def add_azure(
    app: web.Application,
    server: Server,
    tokens: Tokens,
    chat: Dialect,
    embeddings: Dialect,
    messages: Dialect,
) -> None:
    """Add Azure's paths to an application.

    Args:
        app: the application.
        server: has the handlers.
        tokens: the tokens that are accepted.
        chat: chat completions as Azure has them.
        embeddings: OpenAI's embeddings.
        messages: Anthropic's messages.
    """

    def checked(handler: Handler, *, takes_bearer_keys: bool) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            key = request.headers.get("api-key") or request.headers.get("x-api-key")
            if takes_bearer_keys and key is None:
                key = request.headers.get("Authorization", "").removeprefix("Bearer ")
            if key != KEY and not tokens.accepts(request.headers):
                error = {"error": {"code": "401", "message": _NO_ACCESS}}
                return web.json_response(error, status=401)
            is_v1 = "/deployments/" not in request.path
            if not is_v1 and request.query.get("api-version") != API_VERSION:
                return web.json_response({"error": {"code": "404", "message": "x"}}, status=404)
            return await handler(request)

        return handle

    def added(path: str, dialect: Dialect, *, embeds: bool = False) -> None:
        own: Dialect = _Admitted(dialect)  # type: ignore[assignment]  # by `__getattr__`
        handler = server.handler(own, server.embed if embeds else server.generate)
        is_v1 = path.startswith("/openai/v1")
        app.router.add_post(path, checked(handler, takes_bearer_keys=is_v1))

    for prefix in ("/openai/v1", _DEPLOYMENT):
        added(f"{prefix}/chat/completions", chat)
        added(f"{prefix}/embeddings", embeddings, embeds=True)
    added("/anthropic/v1/messages", messages)

    async def models(request: web.Request) -> web.StreamResponse:
        return web.json_response({"data": [{"id": model.name} for model in LISTED]})

    for path in ("/openai/v1/models", "/openai/models"):
        app.router.add_get(path, checked(models, takes_bearer_keys="v1" in path))
