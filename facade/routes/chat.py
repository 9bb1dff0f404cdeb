"""POST /beta/v1/chat/completions."""

from collections.abc import Awaitable
from functools import partial

from aiohttp import web

from facade.context import CONTEXT
from facade.dialects import openai
from facade.routes.generation import generate, read_json, stream


async def create(request: web.Request) -> web.StreamResponse:
    """Answer a chat."""
    return await _begin(request, openai.parse_chat(await read_json(request)))


def _begin(request: web.Request, parsed: openai.ParsedRequest) -> Awaitable[web.StreamResponse]:
    created = int(request.app[CONTEXT].source.now())
    if parsed.stream:
        encoder = openai.ChatStream(created=created, include_usage=parsed.include_usage)
        return stream(request, parsed.request, encoder)
    return generate(request, parsed.request, partial(openai.render_completion, created=created))
