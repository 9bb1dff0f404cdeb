"""The upstream of tests: the sandbox's server, as strict as the providers that it plays.

It has the paths of `services.sandbox.server`, and these:

===================  ====================================================
/{personality}/v1/…  the paths of its dialect, as another provider; Gemini's
                     are below /v1beta
/model/{id}/…         Bedrock's Converse and InvokeModel, for signed requests
/openai/…, /anthropic/…  Azure
/v1/projects/…        Vertex AI, for requests with a token
/v1/files, /v1/batches, /v1/messages/batches  batch services
GET /sandbox/log     the latest requests, credentials redacted
DELETE /sandbox/log  clears them
GET /sandbox/live    numbers of open and of aborted requests
===================  ====================================================

Every request is checked: against the types of the SDK or of Google's discovery document, and by
rules that types do not express.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from aiohttp import web

from services.common import ids
from services.sandbox import server
from services.sandbox.dialects import Dialect
from services.sandbox.gemini_types import (
    BatchEmbedContentsRequest,
    CountTokensRequest,
    GenerateContentRequest,
)
from services.sandbox.handlers import Handler, Server
from services.sandbox.model.models import SandboxError
from services.sandbox.model.openai_shapes import error_body
from services.sandbox.model.play import Sleep
from tests.upstream import (
    gemini_rules,
    openai_embeddings_rules,
    openai_rules,
    responses_rules,
)
from tests.upstream.azure_paths import add_azure
from tests.upstream.batch_services import BatchServices, add_batch_services
from tests.upstream.bedrock.app import add_bedrock
from tests.upstream.checks import Check, Checks, load_checks
from tests.upstream.gemini_batches import add_gemini_batches
from tests.upstream.imitations import (
    GOOGLE,
    ImitatedChat,
    ImitatedEmbeddings,
    ImitatedGemini,
    ImitatedMessages,
    ImitatedResponses,
)
from tests.upstream.log import RequestLog, add_log
from tests.upstream.personalities import PERSONALITIES, USUAL
from tests.upstream.personalities.azure import AZURE
from tests.upstream.personalities.base import Personality
from tests.upstream.reranking import rerank
from tests.upstream.speech import speak
from tests.upstream.vertex.app import add_vertex
from tests.upstream.vertex.tokens import ServiceAccount, Tokens

_FORM_FIELDS = frozenset({"file", "model", "language", "response_format"})


@dataclass(frozen=True, slots=True)
class Upstream:
    """A running upstream: its URL, and the log of its requests."""

    url: str
    log: RequestLog


def create_app(
    log: RequestLog | None = None,
    *,
    sleep: Sleep = asyncio.sleep,
    new_id: ids.IdGenerator = ids.new_id,
    now: Callable[[], float] = time.time,
    personalities: Sequence[Personality] = PERSONALITIES,
    tokens: Tokens | None = None,
    account: ServiceAccount | None = None,
    batch_services: BatchServices | None = None,
) -> web.Application:
    """Build the application. Run it with handler cancellation, to detect aborted requests.

    Args:
        log: the request log; a new one if None.
        sleep: waits for the given seconds between the pieces of `slow`.
        new_id: generates ids of answers and requests from a prefix.
        now: returns Unix seconds.
        personalities: the emulated providers, besides the makers of the APIs.
        tokens: the access tokens that clouds accept; issued by the application too.
        account: the service account of Google that gets some; by default one without a key.
        batch_services: what the batch services do; by default they run all requests.
    """
    app = web.Application(client_max_size=server.MAX_BODY_BYTES)
    add_log(app, RequestLog() if log is None else log)
    app.middlewares.append(_check_form)
    handlers = Server(sleep, new_id)
    made = _Made(load_checks(), new_id, now)
    chat, messages = made.chat(USUAL), made.messages(USUAL)
    server.add_openai(app.router, handlers, "", chat, made.embeddings())
    server.add_responses(
        app.router, handlers, "", made.responses(USUAL), made.counting_responses(USUAL)
    )
    app.router.add_post("/v1/audio/speech", speak)
    app.router.add_post("/cohere/{version:v[12]}/rerank", rerank)
    server.add_anthropic(app.router, handlers, "", messages, made.counting(USUAL))
    made.add_batches(app, batch_services or BatchServices())
    server.add_models(app.router, handlers, "", chat, messages)
    made.add_gemini(app, handlers, GOOGLE)
    add_bedrock(app, handlers, new_id, now, made.of_claude(), made.checks.betas)
    tokens = tokens or Tokens(now)
    made.add_vertex(app, handlers, tokens, account)
    add_azure(app, handlers, tokens, made.chat(AZURE), made.embeddings(), messages)
    for personality in personalities:
        path = f"/{personality.name}"
        if personality.dialect == "gemini":
            made.add_gemini(app, handlers, personality)
            continue
        own: Dialect
        if personality.dialect == "openai":
            own = made.chat(personality)
            server.add_openai(app.router, handlers, path, own, made.embeddings())
            if personality.convert_responses_request is not None:
                server.add_responses(
                    app.router,
                    handlers,
                    path,
                    made.responses(personality),
                    made.counting_responses(personality),
                )
        else:
            own = made.messages(personality)
            server.add_anthropic(app.router, handlers, path, own, made.counting(personality))
        server.add_models(app.router, handlers, path, own, own)
    server.add_unknown_paths(app.router, handlers, chat, messages)
    return app


@web.middleware
async def _check_form(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse a transcription with unknown fields."""
    if request.path.endswith("/audio/transcriptions"):
        unknown = (await request.post()).keys() - _FORM_FIELDS
        if unknown:
            error = SandboxError("invalid", 400, f"Unknown fields: {sorted(unknown)}")
            return web.json_response(error_body(error), status=error.status)
    return await handler(request)


@asynccontextmanager
async def serving(*, sleep: Sleep = asyncio.sleep) -> AsyncIterator[Upstream]:
    """Run the upstream on a free port within the context."""
    log = RequestLog()
    async with server.serving(create_app(log, sleep=sleep)) as url:
        yield Upstream(url, log)


@dataclass(frozen=True, slots=True)
class _Made:
    """Creates the imitated dialects."""

    checks: Checks
    new_id: ids.IdGenerator
    now: Callable[[], float]

    def chat(self, personality: Personality) -> ImitatedChat:
        rules = partial(openai_rules.find_problem, tool_name=personality.tool_name)
        return ImitatedChat(self.new_id, self.now, (self.checks.chat, rules), personality)

    def responses(self, personality: Personality) -> ImitatedResponses:
        checks = (self.checks.responses, responses_rules.find_problem)
        return ImitatedResponses(self.new_id, self.now, checks, personality)

    def counting_responses(self, personality: Personality) -> ImitatedResponses:
        checks = (self.checks.count_input_tokens,)
        return ImitatedResponses(self.new_id, self.now, checks, personality)

    def embeddings(self) -> ImitatedEmbeddings:
        checks = (self.checks.embeddings, openai_embeddings_rules.find_problem)
        return ImitatedEmbeddings(self.new_id, self.now, checks)

    def messages(self, personality: Personality) -> ImitatedMessages:
        checks = self.checks
        return ImitatedMessages(
            self.new_id, checks.messages, checks.beta_messages, checks.betas, personality
        )

    def add_batches(self, app: web.Application, services: BatchServices) -> None:
        """Add the batch services."""
        dialects: Mapping[str, Dialect] = {
            "/v1/chat/completions": self.chat(USUAL),
            "/v1/responses": self.responses(USUAL),
            "/v1/messages": self.messages(USUAL),
        }
        check = self.checks.openai_batches
        add_batch_services(app, services, dialects, check, self.new_id, self.now)
        generate = ImitatedGemini(
            self.new_id, GenerateContentRequest, gemini_rules.generate_problem, GOOGLE
        )
        add_gemini_batches(app, services, generate, self.new_id, self.now)

    def add_gemini(self, app: web.Application, handlers: Server, personality: Personality) -> None:
        """Add Google's API as a deployment has it."""
        new_id = self.new_id
        server.add_gemini(
            app.router,
            handlers,
            f"/{personality.name}".rstrip("/"),
            ImitatedGemini(
                new_id, GenerateContentRequest, gemini_rules.generate_problem, personality
            ),
            counting=ImitatedGemini(new_id, CountTokensRequest, gemini_rules.count_problem),
            embeddings=ImitatedGemini(
                new_id, BatchEmbedContentsRequest, gemini_rules.embed_problem
            ),
        )

    def add_vertex(
        self,
        app: web.Application,
        handlers: Server,
        tokens: Tokens,
        account: ServiceAccount | None,
    ) -> None:
        """Add Vertex AI."""
        claude, betas = self.of_claude(), self.checks.betas
        add_vertex(app, handlers, self.new_id, tokens, account, claude, betas)

    def of_claude(self) -> Mapping[str, tuple[Check, Check]]:
        """Return the checks of Anthropic's bodies at clouds, each without and with betas."""
        checks = self.checks
        return {
            "messages": (checks.messages, checks.beta_messages),
            "count": (checks.count_tokens, checks.beta_count_tokens),
        }

    def counting(self, personality: Personality) -> ImitatedMessages:
        checks = self.checks
        return ImitatedMessages(
            self.new_id, checks.count_tokens, checks.beta_count_tokens, checks.betas, personality
        )
