"""HTTP handlers of the sandbox, for all dialects."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.ids import IdGenerator
from services.sandbox import gemini_wire, openai_embeddings
from services.sandbox.dialects import Body, Dialect
from services.sandbox.model import behaviours, requests, transcripts, vectors
from services.sandbox.model.answers import Answer
from services.sandbox.model.models import Model, SandboxError, find_model
from services.sandbox.model.play import CutError, Sleep, play

# Gemini's method of streamed answers.
STREAMED = "streamGenerateContent"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request in progress."""

    request: web.Request
    dialect: Dialect
    request_id: str

    def model(self, body: Body) -> str:
        """Return the model's name: from the path for Gemini, else from the body."""
        name: str = self.request.match_info.get("model") or body["model"]
        return name

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every response."""
        return {self.dialect.request_id_header: self.request_id}

    def json(
        self, value: Any, status: int = 200, more: Mapping[str, str] | None = None
    ) -> web.Response:
        """Return a JSON response."""
        return web.Response(
            body=orjson.dumps(value),
            status=status,
            content_type="application/json",
            headers={**self.headers, **(more or {})},
        )

    def failure(self, error: SandboxError) -> web.Response:
        """Return an error response in the dialect's format."""
        wait = error.retry_after_s
        in_header = wait is not None and self.dialect.waits_in_header
        more = {"retry-after": str(wait)} if in_header else {}
        return self.json(self.dialect.failure(error, self.request_id), error.status, more)


class Server:
    """The sandbox's handlers."""

    def __init__(self, sleep: Sleep, new_id: IdGenerator) -> None:
        self._sleep = sleep
        self._new_id = new_id

    def handler(
        self,
        dialect: Dialect,
        answer: Callable[[Exchange, Body], Awaitable[web.StreamResponse]],
    ) -> Handler:
        """Return a handler that checks requests, and then calls `answer`."""

        async def respond(exchange: Exchange) -> web.StreamResponse:
            return await answer(exchange, await _accepted_body(exchange))

        return self._in_dialect(dialect, respond)

    def transcriber(self, dialect: Dialect) -> Handler:
        """Return a handler that transcribes the recording in a form."""
        return self._in_dialect(dialect, _transcribe)

    def _in_dialect(
        self, dialect: Dialect, respond: Callable[[Exchange], Awaitable[web.StreamResponse]]
    ) -> Handler:
        """Return a handler that answers errors in the format of a dialect."""

        async def handle(request: web.Request) -> web.StreamResponse:
            exchange = Exchange(request, dialect, self._new_id("req_"))
            try:
                return await respond(exchange)
            except SandboxError as error:
                return exchange.failure(error)

        return handle

    async def count_tokens(self, exchange: Exchange, body: Body) -> web.StreamResponse:
        """Return the number of input tokens."""
        find_model(exchange.model(body))
        read = requests.input_tokens(_canonical(exchange, body))
        return exchange.json(exchange.dialect.counted(read))

    async def embed(self, exchange: Exchange, body: Body) -> web.StreamResponse:
        """Return embeddings in OpenAI's format."""
        texts = openai_embeddings.texts_of(body)
        made = vectors.embed(texts, find_model(body["model"]), body.get("dimensions"))
        return exchange.json(openai_embeddings.answer(made, body))

    async def embed_batch(self, exchange: Exchange, body: Body) -> web.StreamResponse:
        """Return embeddings in Gemini's format."""
        texts = gemini_wire.texts_to_embed(body)
        size = gemini_wire.size_of_vectors(body)
        made = vectors.embed(texts, find_model(exchange.model(body)), size)
        return exchange.json({"embeddings": [{"values": vector} for vector in made]})

    async def generate(self, exchange: Exchange, body: Body) -> web.StreamResponse:
        """Answer a generation request, whole or as a stream."""
        model = find_model(exchange.model(body))
        answer = behaviours.answer(_canonical(exchange, body), model)
        is_stream = exchange.request.path.endswith(STREAMED)
        if is_stream and exchange.request.query.get("alt") != "sse":
            raise SandboxError("invalid", 400, "The sandbox streams as alt=sse alone")
        if is_stream or body.get("stream"):
            return await self._stream(exchange, body, answer, model)
        return await self._whole(exchange, body, answer, model)

    async def _whole(
        self, exchange: Exchange, body: Body, answer: Answer, model: Model
    ) -> web.StreamResponse:
        response = exchange.json(exchange.dialect.whole(answer, model, body))
        try:
            async with aclosing(play(answer, model, self._sleep)) as steps:
                async for _ in steps:
                    pass  # only the timing matters here
        except CutError:
            return await _half(exchange, response)
        return response

    async def _stream(
        self, exchange: Exchange, body: Body, answer: Answer, model: Model
    ) -> web.StreamResponse:
        writer = exchange.dialect.stream(answer, model, body)
        response = web.StreamResponse(headers={**exchange.headers, "cache-control": "no-cache"})
        response.content_type = "text/event-stream"
        try:
            async with aclosing(play(answer, model, self._sleep)) as steps:
                async for step in steps:
                    if not response.prepared:
                        # Not before the first step: a silent model does not send headers either.
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
        """Return a handler that lists models, shows one, or answers 404 for an unknown path."""

        async def handle(request: web.Request) -> web.StreamResponse:
            dialect = anthropic if "anthropic-version" in request.headers else usual
            return await self._in_dialect(dialect, _show_models)(request)

        return handle


async def _show_models(exchange: Exchange) -> web.StreamResponse:
    request, dialect = exchange.request, exchange.dialect
    if "path" in request.match_info:
        where = f"{request.method} {request.path}"
        raise SandboxError("not_found", 404, f"There is no {where}")
    dialect.authenticate(request.headers)
    name = request.match_info.get("name")
    return exchange.json(dialect.listed() if name is None else dialect.described(find_model(name)))


async def _accepted_body(exchange: Exchange) -> Body:
    data = await exchange.request.read()
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise SandboxError("invalid", 400, f"The body is not JSON: {error}") from error
    exchange.dialect.authenticate(exchange.request.headers)
    if not isinstance(body, dict):
        raise SandboxError("invalid", 400, "The body must be a JSON object")
    return exchange.dialect.accept(body, exchange.request.headers)


def _canonical(exchange: Exchange, body: Body) -> GenerateRequest:
    """Return the canonical request of a body whose types are right."""
    try:
        return exchange.dialect.read_request(body)
    except KeyError as error:
        # A field that only some types of its object require.
        raise SandboxError("invalid", 400, f"The field `{error.args[0]}` is required") from error


async def _transcribe(exchange: Exchange) -> web.StreamResponse:
    form = dict(await exchange.request.post())
    exchange.dialect.authenticate(exchange.request.headers)
    file = form.get("file")
    if not isinstance(file, web.FileField):
        raise SandboxError("invalid", 400, "A file is needed", path=("file",))
    model = find_model(str(form.get("model", "")))
    text = transcripts.transcribe(file.file.read(), str(form.get("language", "")), model)
    usage = {"type": "tokens", "input_tokens": 14, "output_tokens": len(text.split())}
    return exchange.json({"text": text, "usage": usage})


async def _half(exchange: Exchange, whole: web.Response) -> web.StreamResponse:
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
