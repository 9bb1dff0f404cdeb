"""POST /beta/v1/chat/completions."""

from collections.abc import Awaitable
from functools import partial

from aiohttp import web

from facade.context import CONTEXT
from facade.dialects import openai
from facade.parsing import Parsed
from facade.routes.generation import generate, parse, stream


async def create(request: web.Request) -> web.StreamResponse:
    """Answer a chat."""
    return await _begin(request, await parse(request, "chat"))


def _begin(request: web.Request, parsed: Parsed) -> Awaitable[web.StreamResponse]:
    created = int(request.app[CONTEXT].source.now())
    if parsed.stream:
        encoder = openai.ChatStream(created=created, include_usage=parsed.include_usage)
        return stream(request, parsed, encoder)
    return generate(request, parsed, partial(openai.render_completion, created=created))
