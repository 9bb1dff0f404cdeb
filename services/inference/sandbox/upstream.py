"""The sandbox behind HTTP, as OpenAI, as Anthropic and as Google's Gemini API.

==============================  ================================================
POST /v1/chat/completions       OpenAI's chat completions
POST /v1/embeddings             OpenAI's vectors of texts
POST /v1/messages               Anthropic's messages
POST /v1/messages/count_tokens  Anthropic's count of what it would read
GET /v1/models[/{id}]           Anthropic's shape where `anthropic-version` came
POST /v1beta/models/{id}:…      Gemini's generateContent, streamGenerateContent,
                                countTokens and batchEmbedContents
GET /v1beta/models[/{id}]       Gemini's models
GET /sandbox/log                the latest requests, credentials blotted out
DELETE /sandbox/log             forgets them
GET /sandbox/live               requests open now, and how many callers left
==============================  ================================================

OpenAI's and Anthropic's paths are there without `/v1` too. Every request is checked: a
credential (any, but there must be one), the types of the SDK or of Google's discovery
document, and the rules that types don't tell.
Failures have the shape, status and headers of the provider that is played.
"""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from aiohttp import web

from services.common import ids
from services.inference.sandbox import (
    behaviours,
    gemini_rules,
    gemini_wire,
    openai_embeddings,
    vectors,
)
from services.inference.sandbox.checks import Body, load_checks
from services.inference.sandbox.conversation import Answer
from services.inference.sandbox.dialects import Anthropic, Dialect, OpenAI
from services.inference.sandbox.gemini import Gemini
from services.inference.sandbox.log import Entry, RequestLog
from services.inference.sandbox.models import Model, SandboxError, find_model
from services.inference.sandbox.play import CutError, Sleep, play

_MAX_BODY = 256 << 20
_STREAMED = "streamGenerateContent"  # Gemini's method of streamed answers
_SHUTDOWN_S = 1.0  # what is still open when the sandbox stops is not waited for any longer

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Upstream:
    """A running sandbox: where it is, and what it was sent."""

    url: str
    log: RequestLog


def create_app(
    log: RequestLog | None = None,
    *,
    sleep: Sleep = asyncio.sleep,
    new_id: Callable[[str], str] = ids.new_id,
    now: Callable[[], float] = time.time,
) -> web.Application:
    """Build the application; run it with handler cancellation, or it misses callers that leave.

    Args:
        log: where requests are noted; one of its own where none is given.
        sleep: waits for seconds, between the pieces of `slow`.
        new_id: makes the ids of answers and requests from a prefix.
        now: Unix seconds.

    Raises:
        MissingSdkError: the official SDKs, whose types check requests, are not installed.
    """
    checks = load_checks()
    chat = OpenAI(checks.chat, new_id, now)
    embeddings = OpenAI(checks.embeddings, new_id, now, openai_embeddings.find_problem)
    messages = Anthropic(checks.messages, checks.beta_messages, checks.betas, new_id)
    counting = Anthropic(checks.count_tokens, checks.beta_count_tokens, checks.betas, new_id)
    server = _Server(RequestLog() if log is None else log, sleep, new_id)
    app = web.Application(client_max_size=_MAX_BODY)
    for prefix in ("/v1", ""):
        app.router.add_post(f"{prefix}/chat/completions", server.handler(chat, server.generate))
        app.router.add_post(f"{prefix}/embeddings", server.handler(embeddings, server.embed))
        app.router.add_post(f"{prefix}/messages", server.handler(messages, server.generate))
        app.router.add_post(
            f"{prefix}/messages/count_tokens", server.handler(counting, server.count_tokens)
        )
        app.router.add_get(f"{prefix}/models", server.models(chat, messages))
        app.router.add_get(f"{prefix}/models/{{name:.+}}", server.models(chat, messages))
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
    """Run the sandbox while the context lasts; port 0 takes any free one."""
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
    """Run the sandbox until SIGINT or SIGTERM; `ready` is given its address."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with serving(host, port) as upstream:
        ready(upstream.url)
        await stop.wait()


@dataclass(frozen=True, slots=True)
class _Exchange:
    """One request while it is answered."""

    request: web.Request
    dialect: Dialect
    request_id: str
    entry: Entry

    def model(self, body: Body) -> str:
        """Return the name of the model: Gemini's is in the path."""
        name: str = self.request.match_info.get("model") or body["model"]
        return name

    @property
    def headers(self) -> dict[str, str]:
        return {self.dialect.request_id_header: self.request_id}

    def json(
        self, value: Mapping[str, Any], status: int = 200, more: Mapping[str, str] | None = None
    ) -> web.Response:
        return web.Response(
            body=orjson.dumps(value),
            status=status,
            content_type="application/json",
            headers={**self.headers, **(more or {})},
        )

    def failure(self, error: SandboxError) -> web.Response:
        wait = error.retry_after_s
        in_header = wait is not None and self.dialect.waits_in_header
        more = {"retry-after": str(wait)} if in_header else {}
        return self.json(self.dialect.failure(error, self.request_id), error.status, more)


class _Server:
    def __init__(self, log: RequestLog, sleep: Sleep, new_id: Callable[[str], str]) -> None:
        self._log = log
        self._sleep = sleep
        self._new_id = new_id

    def handler(
        self,
        dialect: Dialect,
        answer: Callable[[_Exchange, Body], Awaitable[web.StreamResponse]],
    ) -> Handler:
        """Give a handler that notes, counts and checks a request before it is answered."""

        async def handle(request: web.Request) -> web.StreamResponse:
            entry = self._log.add(request.path, dialect.name, request.headers.items())
            exchange = _Exchange(request, dialect, self._new_id("req_"), entry)
            with self._counted():
                try:
                    body = await self._checked_body(exchange)
                    response = await answer(exchange, body)
                except SandboxError as error:
                    response = exchange.failure(error)
            entry.status = response.status
            return response

        return handle

    @contextmanager
    def _counted(self) -> Iterator[None]:
        live = self._log.live
        live.open += 1
        try:
            yield
        except (asyncio.CancelledError, ConnectionResetError):
            live.aborted += 1
            raise
        finally:
            live.open -= 1

    async def _checked_body(self, exchange: _Exchange) -> Body:
        data = await exchange.request.read()
        try:
            body = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise SandboxError("invalid", 400, f"The body is not JSON: {error}") from error
        self._log.keep_body(exchange.entry, body, len(data))
        exchange.dialect.authenticate(exchange.request.headers)
        if not isinstance(body, dict):
            raise SandboxError("invalid", 400, "The body must be a JSON object")
        if problem := exchange.dialect.problem(body, exchange.request.headers):
            raise SandboxError("invalid", 400, problem.message, path=problem.path)
        return body

    async def count_tokens(self, exchange: _Exchange, body: Body) -> web.StreamResponse:
        find_model(exchange.model(body))
        read = exchange.dialect.read_prompt(body).input_tokens()
        return exchange.json(exchange.dialect.counted(read))

    async def embed(self, exchange: _Exchange, body: Body) -> web.StreamResponse:
        texts = openai_embeddings.texts_of(body)
        made = vectors.embed(texts, find_model(body["model"]))
        return exchange.json(openai_embeddings.answer(made, body))

    async def embed_batch(self, exchange: _Exchange, body: Body) -> web.StreamResponse:
        texts = gemini_wire.texts_to_embed(body)
        made = vectors.embed(texts, find_model(exchange.model(body)))
        return exchange.json({"embeddings": [{"values": vector} for vector in made]})

    async def generate(self, exchange: _Exchange, body: Body) -> web.StreamResponse:
        model = find_model(exchange.model(body))
        answer = behaviours.answer(exchange.dialect.read_prompt(body), model)
        is_stream = exchange.request.path.endswith(_STREAMED)
        if is_stream and exchange.request.query.get("alt") != "sse":
            raise SandboxError("invalid", 400, "The sandbox streams as alt=sse alone")
        if is_stream or body.get("stream"):
            return await self._stream(exchange, body, answer, model)
        return await self._whole(exchange, answer, model)

    async def _whole(self, exchange: _Exchange, answer: Answer, model: Model) -> web.StreamResponse:
        response = exchange.json(exchange.dialect.whole(answer, model))
        try:
            async with aclosing(play(answer, model, self._sleep)) as steps:
                async for _ in steps:
                    pass  # the time it takes is all that matters here
        except CutError:
            return await _half(exchange, response)
        return response

    async def _stream(
        self, exchange: _Exchange, body: Body, answer: Answer, model: Model
    ) -> web.StreamResponse:
        writer = exchange.dialect.stream(answer, model, body)
        response = web.StreamResponse(headers={**exchange.headers, "cache-control": "no-cache"})
        response.content_type = "text/event-stream"
        try:
            async with aclosing(play(answer, model, self._sleep)) as steps:
                async for step in steps:
                    if not response.prepared:
                        # Not before the first step: a silent model sends no headers either.
                        await response.prepare(exchange.request)
                    if data := writer.write(step):
                        await response.write(data)
            await response.write(writer.end())
        except CutError:
            _close(exchange.request)
        except SandboxError as error:
            await response.write(writer.failure(error, exchange.request_id))
        return response

    def models(self, usual: Dialect, anthropic: Dialect) -> Handler:
        """Give a handler that tells of models, or that there is nothing at a path."""

        async def handle(request: web.Request) -> web.StreamResponse:
            dialect = anthropic if "anthropic-version" in request.headers else usual
            entry = self._log.add(request.path, dialect.name, request.headers.items())
            exchange = _Exchange(request, dialect, self._new_id("req_"), entry)
            name = request.match_info.get("name")
            try:
                if "path" in request.match_info:
                    where = f"{request.method} {request.path}"
                    raise SandboxError("not_found", 404, f"There is no {where}")
                dialect.authenticate(request.headers)
                shown = dialect.listed() if name is None else dialect.described(find_model(name))
                response = exchange.json(shown)
            except SandboxError as error:
                response = exchange.failure(error)
            entry.status = response.status
            return response

        return handle

    async def show_log(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=orjson.dumps(self._log.as_json()), content_type="application/json")

    async def clear_log(self, request: web.Request) -> web.StreamResponse:
        self._log.clear()
        return web.Response(status=204)

    async def show_live(self, request: web.Request) -> web.StreamResponse:
        return web.Response(
            body=orjson.dumps(asdict(self._log.live)), content_type="application/json"
        )


def _add_gemini(router: web.UrlDispatcher, server: _Server, new_id: Callable[[str], str]) -> None:
    gemini = Gemini(new_id)
    methods = {
        "generateContent": server.handler(gemini, server.generate),
        _STREAMED: server.handler(gemini, server.generate),
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


async def _half(exchange: _Exchange, whole: web.Response) -> web.StreamResponse:
    """Send headers and half of a body, then break the connection."""
    body = whole.body
    assert isinstance(body, bytes)
    response = web.StreamResponse(headers=exchange.headers)
    response.content_type = "application/json"
    response.content_length = len(body)
    await response.prepare(exchange.request)
    await response.write(body[: len(body) // 2])
    _close(exchange.request)
    return response


def _close(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.close()
