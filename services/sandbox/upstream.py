"""The sandbox's HTTP server, with the APIs of OpenAI, Anthropic and Google's Gemini.

==============================  ================================================
POST /v1/chat/completions       OpenAI's chat completions
POST /v1/responses              OpenAI's responses, without storage
POST /v1/embeddings             OpenAI's embeddings
POST /v1/audio/transcriptions   OpenAI's transcriptions
POST /v1/messages               Anthropic's messages
POST /v1/messages/count_tokens  Anthropic's count of input tokens
GET /v1/models[/{id}]           Anthropic's format with a header `anthropic-version`
POST /v1beta/models/{id}:…      Gemini's generateContent, streamGenerateContent,
                                countTokens and batchEmbedContents
GET /v1beta/models[/{id}]       Gemini's models
GET /sandbox/log                the latest requests, credentials redacted
DELETE /sandbox/log             clears them
GET /sandbox/live               numbers of open and of aborted requests
==============================  ================================================

OpenAI's and Anthropic's paths also exist without `/v1`, and below the name of a personality
(`/deepseek/v1/chat/completions`), which emulates that provider. Every request is checked: a
credential (any value), the types of the SDK or of Google's discovery document, and rules that types
do not express. Errors have the format, status and headers of the emulated provider.
"""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from aiohttp import web

from services.common import ids
from services.sandbox import gemini_rules, openai_embeddings, openai_rules
from services.sandbox.checks import Checks, load_checks
from services.sandbox.dialects import Anthropic, Dialect, OpenAI
from services.sandbox.gemini import Gemini
from services.sandbox.handlers import STREAMED, Server
from services.sandbox.log import RequestLog
from services.sandbox.model.play import Sleep
from services.sandbox.personalities import PERSONALITIES, USUAL
from services.sandbox.personalities.base import Personality
from services.sandbox.responses import Responses

_MAX_BODY = 256 << 20
_SHUTDOWN_S = 1.0  # maximum wait for open requests when the sandbox stops


@dataclass(frozen=True, slots=True)
class Upstream:
    """A running sandbox: its URL, and the log of its requests."""

    url: str
    log: RequestLog


def create_app(
    log: RequestLog | None = None,
    *,
    sleep: Sleep = asyncio.sleep,
    new_id: ids.IdGenerator = ids.new_id,
    now: Callable[[], float] = time.time,
    personalities: Sequence[Personality] = PERSONALITIES,
) -> web.Application:
    """Build the application. Run it with handler cancellation, to detect aborted requests.

    Args:
        log: the request log; a new one if None.
        sleep: waits for the given seconds between the pieces of `slow`.
        new_id: generates ids of answers and requests from a prefix.
        now: returns Unix seconds.
        personalities: the emulated providers, besides the makers of the APIs.

    Raises:
        MissingSdkError: the official SDKs, whose types check requests, are not installed.
    """
    checks = load_checks()
    server = Server(RequestLog() if log is None else log, sleep, new_id)
    app = web.Application(client_max_size=_MAX_BODY)
    made = _Made(checks, new_id, now)
    chat, messages = made.chat(USUAL), made.messages(USUAL)
    _add_openai(app.router, server, "", chat, made.embeddings())
    _add_responses(app.router, server, "", made.responses(USUAL))
    _add_anthropic(app.router, server, "", messages, made.counting(USUAL))
    _add_models(app.router, server, "", chat, messages)
    for personality in personalities:
        path = f"/{personality.name}"
        own: Dialect
        if personality.dialect == "openai":
            own = made.chat(personality)
            _add_openai(app.router, server, path, own, made.embeddings())
            if personality.convert_responses_request is not None:
                _add_responses(app.router, server, path, made.responses(personality))
        else:
            own = made.messages(personality)
            _add_anthropic(app.router, server, path, own, made.counting(personality))
        _add_models(app.router, server, path, own, own)
    _add_gemini(app.router, server, new_id)
    app.router.add_get("/sandbox/log", server.show_log)
    app.router.add_delete("/sandbox/log", server.clear_log)
    app.router.add_get("/sandbox/live", server.show_live)
    app.router.add_route("*", "/{path:.*}", server.models(chat, messages))
    return app


@asynccontextmanager
async def serving(
    host: str = "127.0.0.1", port: int = 0, *, sleep: Sleep = asyncio.sleep
) -> AsyncIterator[Upstream]:
    """Run the sandbox within the context; port 0 selects a free port."""
    log = RequestLog()
    runner = web.AppRunner(
        create_app(log, sleep=sleep),
        handler_cancellation=True,
        access_log=None,
        shutdown_timeout=_SHUTDOWN_S,
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield Upstream(f"http://{host}:{runner.addresses[0][1]}", log)
    finally:
        await runner.cleanup()


async def serve(host: str, port: int, ready: Callable[[str], None]) -> None:
    """Run the sandbox until SIGINT or SIGTERM; `ready` is called with its URL."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with serving(host, port) as upstream:
        ready(upstream.url)
        await stop.wait()


@dataclass(frozen=True, slots=True)
class _Made:
    """Creates the sandbox's dialects."""

    checks: Checks
    new_id: ids.IdGenerator
    now: Callable[[], float]

    def chat(self, personality: Personality) -> OpenAI:
        rules = partial(openai_rules.find_problem, tool_name=personality.tool_name)
        return OpenAI(self.checks.chat, self.new_id, self.now, rules, personality)

    def responses(self, personality: Personality) -> Responses:
        return Responses(self.checks.responses, self.new_id, self.now, personality)

    def embeddings(self) -> OpenAI:
        rules = openai_embeddings.find_problem
        return OpenAI(self.checks.embeddings, self.new_id, self.now, rules)

    def messages(self, personality: Personality) -> Anthropic:
        checks = self.checks
        return Anthropic(
            checks.messages, checks.beta_messages, checks.betas, self.new_id, personality
        )

    def counting(self, personality: Personality) -> Anthropic:
        checks = self.checks
        return Anthropic(
            checks.count_tokens, checks.beta_count_tokens, checks.betas, self.new_id, personality
        )


def _add_openai(
    router: web.UrlDispatcher, server: Server, below: str, chat: Dialect, embeddings: Dialect
) -> None:
    for prefix in (f"{below}/v1", below):
        router.add_post(f"{prefix}/chat/completions", server.handler(chat, server.generate))
        router.add_post(f"{prefix}/embeddings", server.handler(embeddings, server.embed))
        router.add_post(f"{prefix}/audio/transcriptions", server.transcriber(chat))


def _add_responses(
    router: web.UrlDispatcher, server: Server, below: str, responses: Dialect
) -> None:
    for prefix in (f"{below}/v1", below):
        router.add_post(f"{prefix}/responses", server.handler(responses, server.generate))


def _add_anthropic(
    router: web.UrlDispatcher, server: Server, below: str, messages: Dialect, counting: Dialect
) -> None:
    for prefix in (f"{below}/v1", below):
        router.add_post(f"{prefix}/messages", server.handler(messages, server.generate))
        counted = server.handler(counting, server.count_tokens)
        router.add_post(f"{prefix}/messages/count_tokens", counted)


def _add_models(
    router: web.UrlDispatcher, server: Server, below: str, usual: Dialect, anthropic: Dialect
) -> None:
    for prefix in (f"{below}/v1", below):
        router.add_get(f"{prefix}/models", server.models(usual, anthropic))
        router.add_get(f"{prefix}/models/{{name:.+}}", server.models(usual, anthropic))


def _add_gemini(router: web.UrlDispatcher, server: Server, new_id: ids.IdGenerator) -> None:
    gemini = Gemini(new_id)
    methods = {
        "generateContent": server.handler(gemini, server.generate),
        STREAMED: server.handler(gemini, server.generate),
        "countTokens": server.handler(
            Gemini(new_id, gemini_rules.count_problem), server.count_tokens
        ),
        "batchEmbedContents": server.handler(
            Gemini(new_id, gemini_rules.embed_problem), server.embed_batch
        ),
    }
    for method, handle in methods.items():
        router.add_post(f"/v1beta/models/{{model:[^:/]+}}:{method}", handle)
    router.add_get("/v1beta/models", server.models(gemini, gemini))
    router.add_get("/v1beta/models/{name:.+}", server.models(gemini, gemini))
