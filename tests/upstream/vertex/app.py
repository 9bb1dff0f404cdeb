"""The paths of Vertex AI, over the sandbox's models."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import orjson
from aiohttp import web

from services.common.ids import IdGenerator
from services.sandbox.bodies import check_types
from services.sandbox.dialects import Body, Json
from services.sandbox.gemini import Gemini
from services.sandbox.gemini_types import CountTokensRequest, GenerateContentRequest
from services.sandbox.handlers import STREAMED, Exchange, Handler, Server
from services.sandbox.model import vectors
from services.sandbox.model.models import LISTED, SandboxError, find_model
from tests.upstream import gemini_rules
from tests.upstream.checks import Check
from tests.upstream.imitations import ImitatedMessages
from tests.upstream.personalities import USUAL
from tests.upstream.vertex import types
from tests.upstream.vertex.tokens import ServiceAccount, Tokens, add_tokens

_LOCATION = "/v1/projects/{project:[^/]+}/locations/{location:[^/]+}"
_MAKER = re.compile(r"(?:publishers/[a-z]+/models/)?(?:gemini-|claude-)?")
# Of Google's pages, and of Anthropic's SDK from 2.x on.
_ANTHROPIC_VERSIONS = ("vertex-2023-10-16", "2026-10-21")
_NO_TOKEN = (
    "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie "
    "or other valid authentication credential."
)


class VertexGemini(Gemini):
    """Google's models on Vertex AI; see `Dialect`."""

    def __init__(
        self, new_id: IdGenerator, tokens: Tokens, method: str = "generateContent"
    ) -> None:
        counts = method == "countTokens"
        super().__init__(new_id, CountTokensRequest if counts else GenerateContentRequest)
        self._tokens = tokens
        self._method = method

    def authenticate(self, headers: Mapping[str, str]) -> None:
        """Check for a token that was issued."""
        _authenticate(headers, self._tokens)

    def accept(self, body: Body, headers: Mapping[str, str]) -> Body:
        """Check a body by the types of google-genai, and by the rules that they do not express."""
        types.check(self._method, body)
        if self._method not in ("generateContent", "countTokens"):
            return body
        check = gemini_rules.generate_problem
        if self._method == "countTokens":
            check, whole = gemini_rules.count_problem, {"model": "models/echo", **body}
            problem = check({"generateContentRequest": whole})
        else:
            problem = check(body)
        if problem is not None:
            raise SandboxError("invalid", 400, problem.message, path=problem.path)
        if self._method == "countTokens":
            return {"generateContentRequest": {"model": "models/echo", **body}}
        check_types(body, self._request_type)
        return body


class VertexClaude(ImitatedMessages):
    """Anthropic's models on Vertex AI; see `Dialect`."""

    def __init__(
        self,
        new_id: IdGenerator,
        checks: tuple[Check, Check],
        betas: Collection[str],
        tokens: Tokens,
        *,
        counts: bool = False,
    ) -> None:
        super().__init__(new_id, *checks, betas, USUAL)
        self._tokens = tokens
        self._counts = counts

    def authenticate(self, headers: Mapping[str, str]) -> None:
        """Check for a token that was issued."""
        _authenticate(headers, self._tokens)

    def accept(self, body: Body, headers: Mapping[str, str]) -> Body:
        """Check a body, without what only Vertex AI has in it."""
        own = dict(body)
        if own.pop("anthropic_version", None) not in _ANTHROPIC_VERSIONS:
            raise SandboxError("invalid", 400, "anthropic_version: Field required")
        if self._counts:
            own["model"] = sandbox_model(own["model"])
        elif "model" in own:
            raise SandboxError("invalid", 400, "model: Extra inputs are not permitted")
        else:
            own["model"] = "echo"  # that of the path is called
        return super().accept(own, headers)


def _authenticate(headers: Mapping[str, str], tokens: Tokens) -> None:
    if not tokens.accepts(headers):
        raise SandboxError("authentication", 401, _NO_TOKEN)


def add_vertex(
    app: web.Application,
    server: Server,
    new_id: IdGenerator,
    tokens: Tokens,
    account: ServiceAccount | None,
    claude: Mapping[str, tuple[Check, Check]],
    betas: Collection[str],
) -> None:
    """Add Vertex AI's paths to an application.

    Args:
        app: the application.
        server: has the handlers.
        new_id: generates ids of answers.
        tokens: the tokens that are accepted.
        account: the service account that gets some.
        claude: checks of Anthropic's bodies: `messages` and `count`, each without and with betas.
        betas: the names of beta features.
    """
    add_tokens(app, tokens, account)
    router = app.router
    google = f"{_LOCATION}/publishers/google/models/{{model:[^:/]+}}"
    for method, answer in (
        ("generateContent", server.generate),
        (STREAMED, server.generate),
        ("countTokens", server.count_tokens),
        ("predict", _embed),
        ("embedContent", _embed),
        ("batchEmbedContents", _embed),
    ):
        checked = "generateContent" if method == STREAMED else method
        dialect = VertexGemini(new_id, tokens, checked)
        router.add_post(f"{google}:{method}", _renamed(server.handler(dialect, answer)))
    messages = VertexClaude(new_id, claude["messages"], betas, tokens)
    counting = VertexClaude(new_id, claude["count"], betas, tokens, counts=True)
    anthropic = f"{_LOCATION}/publishers/anthropic/models"
    count = server.handler(counting, server.count_tokens)
    router.add_post(f"{anthropic}/count-tokens:rawPredict", count)
    for method in ("rawPredict", "streamRawPredict"):
        handler = _streams_as_its_path_says(_renamed(server.handler(messages, server.generate)))
        router.add_post(f"{anthropic}/{{model:[^:/]+}}:{method}", handler)
    router.add_get("/v1beta1/publishers/{publisher:[a-z]+}/models", _list(tokens))


def sandbox_model(name: str) -> str:
    """Return the sandbox's name for a model of Vertex AI."""
    return _MAKER.sub("", name).partition("@")[0]


def _renamed(handler: Handler) -> Handler:
    """Return a handler of the sandbox's model that a model of Vertex AI stands for."""

    async def handle(request: web.Request) -> web.StreamResponse:
        request.match_info["model"] = sandbox_model(request.match_info["model"])
        return await handler(request)

    return handle


def _streams_as_its_path_says(handler: Handler) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        streams = orjson.loads(await request.read()).get("stream", False)
        if streams != request.path.endswith("streamRawPredict"):
            return web.json_response({"error": {"code": 400, "message": "stream"}}, status=400)
        return await handler(request)

    return handle


async def _embed(exchange: Exchange, body: Body) -> web.StreamResponse:
    """Return vectors in the format of the path's method."""
    config: Mapping[str, Any]
    match body:
        case {"instances": [*instances]}:
            config = body.get("parameters", {})
            texts = [one["content"] for one in instances]
        case {"requests": [*requests]}:
            config = requests[0].get("embedContentConfig", {})
            texts = [one["content"]["parts"][0]["text"] for one in requests]
        case _:
            config = body.get("embedContentConfig", {})
            texts = [body["content"]["parts"][0]["text"]]
    size = config.get("outputDimensionality")
    made = vectors.embed(texts, find_model(exchange.model(body)), size)
    counts = [len(text.split()) for text in texts]
    usage = {"usageMetadata": {"promptTokenCount": sum(counts)}}
    answer: Json
    if "instances" in body:
        predictions = [
            {"embeddings": {"values": one, "statistics": {"truncated": False, "token_count": n}}}
            for one, n in zip(made, counts, strict=True)
        ]
        answer = {"predictions": predictions, "metadata": {"billableCharacterCount": 1}}
    elif "requests" in body:
        answer = {"embeddings": [{"values": one} for one in made], **usage}
    else:
        answer = {"embedding": {"values": made[0]}, **usage}
    return exchange.json(answer)


def _list(tokens: Tokens) -> Handler:
    """Return a handler that lists the models of a publisher, one on a page."""

    async def handle(request: web.Request) -> web.StreamResponse:
        if not tokens.accepts(request.headers):
            return web.json_response({"error": {"code": 401, "message": _NO_TOKEN}}, status=401)
        publisher = request.match_info["publisher"]
        begins = {"google": "gemini-", "anthropic": "claude-"}[publisher]
        names: Sequence[str] = [f"{begins}{model.name}" for model in LISTED]
        at = int(request.query.get("pageToken") or 0)
        page: Json = {"publisherModels": [{"name": f"publishers/{publisher}/models/{names[at]}"}]}
        if at + 1 < len(names):
            page["nextPageToken"] = str(at + 1)
        return web.json_response(page)

    return handle
