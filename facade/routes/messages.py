"""The messages endpoint under /beta/v1, and its sibling for coding agents under /coding/v1."""

from collections.abc import Awaitable

from aiohttp import web

from facade.context import ANSWERED, CALLER_PATHS, CONTEXT, REQUEST_ID, Answered
from facade.dialects import anthropic
from facade.parsing import Parsed
from facade.routes.generation import generate, metadata, parse, stream
from facade.served import served_headers
from gateway.conversation.v1.conversation_pb2 import Usage
from services.common.errors import invalid


async def create(request: web.Request) -> web.StreamResponse:
    """Answer a conversation."""
    return await _create(request, coding=False)


async def create_coding(request: web.Request) -> web.StreamResponse:
    """Answer a coding agent's conversation."""
    return await _create(request, coding=True)


async def count_tokens(request: web.Request) -> web.Response:
    """Count what a conversation would read."""
    return await _count_tokens(request, coding=False)


async def count_coding_tokens(request: web.Request) -> web.Response:
    """Count what a coding agent's conversation would read."""
    return await _count_tokens(request, coding=True)


async def _create(request: web.Request, *, coding: bool) -> web.StreamResponse:
    betas = _betas(request)
    # No name here for what is parsed: it may have megabytes, and an answer take minutes.
    return await _begin(request, await parse(request, "messages", betas=betas, coding=coding))


def _begin(request: web.Request, parsed: Parsed) -> Awaitable[web.StreamResponse]:
    if parsed.stream:
        encoder = anthropic.MessageStream(request[REQUEST_ID])
        return stream(request, parsed, encoder)
    return generate(request, parsed, anthropic.render_message)


async def _count_tokens(request: web.Request, *, coding: bool) -> web.Response:
    betas = _betas(request)
    parsed = await parse(request, "count_tokens", betas=betas, coding=coding)
    inference = request.app[CONTEXT].inference
    counted = await inference.CountTokens(parsed.request, metadata=metadata(request))
    request[ANSWERED] = Answered.of(counted.served, Usage(input_tokens=counted.input_tokens))
    headers = served_headers(counted.served, request[CALLER_PATHS])
    if counted.estimated:
        headers["x-gateway-estimate"] = "true"
    return web.Response(
        body=anthropic.render_count(counted),
        content_type="application/json",
        headers=headers,
    )


def _betas(request: web.Request) -> list[str]:
    """Return the names in `anthropic-beta`, which may come in several headers.

    Raises:
        GatewayError: invalid, when they are no words.
    """
    lines = request.headers.getall("anthropic-beta", [])
    for line in lines:
        if not (line.isascii() and line.isprintable()):
            raise invalid("anthropic-beta", "anthropic-beta: names of beta features are needed")
    return [name for line in lines for part in line.split(",") if (name := part.strip())]
