"""The sandbox's models over HTTP, with the APIs of OpenAI, Anthropic and Google's Gemini.

==============================  ================================================
POST /v1/chat/completions       OpenAI's chat completions
POST /v1/responses              OpenAI's responses, without storage
POST /v1/embeddings             OpenAI's embeddings
POST /v1/audio/transcriptions   OpenAI's transcriptions
POST /v1/messages               Anthropic's messages
POST /v1/messages/count_tokens  Anthropic's count of input tokens
POST /v1/responses/input_tokens OpenAI's count of input tokens
GET /v1/models[/{id}]           Anthropic's format with a header `anthropic-version`
POST /v1beta/models/{id}:…      Gemini's generateContent, streamGenerateContent,
                                countTokens and batchEmbedContents
GET /v1beta/models[/{id}]       Gemini's models
==============================  ================================================

OpenAI's and Anthropic's paths also exist without `/v1`. A request needs a credential (any value)
and the fields that the models read, with values of their types; further fields are ignored. Errors
have the format, status and headers of the API.
"""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from services.common import ids
from services.sandbox.dialects import Anthropic, Dialect, OpenAI
from services.sandbox.gemini import Gemini
from services.sandbox.gemini_types import BatchEmbedContentsRequest, CountTokensRequest
from services.sandbox.handlers import STREAMED, Server
from services.sandbox.model.play import Sleep
from services.sandbox.openai_embeddings import Embeddings
from services.sandbox.responses import Responses

MAX_BODY_BYTES = 256 << 20
_SHUTDOWN_S = 1.0  # maximum wait for open requests when the server stops


def create_app(
    *,
    sleep: Sleep = asyncio.sleep,
    new_id: ids.IdGenerator = ids.new_id,
    now: Callable[[], float] = time.time,
) -> web.Application:
    """Build the application. Run it with handler cancellation, to stop answers that nobody reads.

    Args:
        sleep: waits for the given seconds between the pieces of `slow`.
        new_id: generates ids of answers and requests from a prefix.
        now: returns Unix seconds.
    """
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    server = Server(sleep, new_id)
    chat, messages = OpenAI(new_id, now), Anthropic(new_id)
    add_openai(app.router, server, "", chat, Embeddings(new_id, now))
    responses = Responses(new_id, now)
    add_responses(app.router, server, "", responses, responses)
    add_anthropic(app.router, server, "", messages, messages)
    add_models(app.router, server, "", chat, messages)
    add_gemini(
        app.router,
        server,
        "",
        Gemini(new_id),
        counting=Gemini(new_id, CountTokensRequest),
        embeddings=Gemini(new_id, BatchEmbedContentsRequest),
    )
    add_unknown_paths(app.router, server, chat, messages)
    return app


@asynccontextmanager
async def serving(
    app: web.Application, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[str]:
    """Serve an application within the context, and yield its URL; port 0 selects a free port."""
    runner = web.AppRunner(
        app, handler_cancellation=True, access_log=None, shutdown_timeout=_SHUTDOWN_S
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield f"http://{host}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def serve(app: web.Application, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve an application until SIGINT or SIGTERM; `ready` is called with its URL."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with serving(app, host, port) as url:
        ready(url)
        await stop.wait()


def add_openai(
    router: web.UrlDispatcher, server: Server, below: str, chat: Dialect, embeddings: Dialect
) -> None:
    """Add OpenAI's paths, other than responses and models, below a path."""
    for prefix in (f"{below}/v1", below):
        router.add_post(f"{prefix}/chat/completions", server.handler(chat, server.generate))
        router.add_post(f"{prefix}/embeddings", server.handler(embeddings, server.embed))
        router.add_post(f"{prefix}/audio/transcriptions", server.transcriber(chat))


def add_responses(
    router: web.UrlDispatcher, server: Server, below: str, responses: Dialect, counting: Dialect
) -> None:
    """Add the paths of OpenAI's responses below a path."""
    for prefix in (f"{below}/v1", below):
        router.add_post(f"{prefix}/responses", server.handler(responses, server.generate))
        router.add_post(
            f"{prefix}/responses/input_tokens", server.handler(counting, server.count_tokens)
        )


def add_anthropic(
    router: web.UrlDispatcher, server: Server, below: str, messages: Dialect, counting: Dialect
) -> None:
    """Add Anthropic's paths, other than models, below a path."""
    for prefix in (f"{below}/v1", below):
        router.add_post(f"{prefix}/messages", server.handler(messages, server.generate))
        router.add_post(
            f"{prefix}/messages/count_tokens", server.handler(counting, server.count_tokens)
        )


def add_models(
    router: web.UrlDispatcher, server: Server, below: str, usual: Dialect, anthropic: Dialect
) -> None:
    """Add the paths of models below a path; `anthropic` answers its own callers."""
    for prefix in (f"{below}/v1", below):
        router.add_get(f"{prefix}/models", server.models(usual, anthropic))
        router.add_get(f"{prefix}/models/{{name:.+}}", server.models(usual, anthropic))


def add_gemini(
    router: web.UrlDispatcher,
    server: Server,
    below: str,
    gemini: Dialect,
    *,
    counting: Dialect,
    embeddings: Dialect,
) -> None:
    """Add Gemini's paths below a path."""
    methods = {
        "generateContent": server.handler(gemini, server.generate),
        STREAMED: server.handler(gemini, server.generate),
        "countTokens": server.handler(counting, server.count_tokens),
        "batchEmbedContents": server.handler(embeddings, server.embed_batch),
    }
    for method, handle in methods.items():
        router.add_post(f"{below}/v1beta/models/{{model:[^:/]+}}:{method}", handle)
    router.add_get(f"{below}/v1beta/models", server.models(gemini, gemini))
    router.add_get(f"{below}/v1beta/models/{{name:.+}}", server.models(gemini, gemini))


def add_unknown_paths(
    router: web.UrlDispatcher, server: Server, usual: Dialect, anthropic: Dialect
) -> None:
    """Answer all other paths with 404."""
    router.add_route("*", "/{path:.*}", server.models(usual, anthropic))
