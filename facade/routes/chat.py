"""POST /beta/v1/chat/completions."""

from functools import partial

from aiohttp import web

from facade.context import CONTEXT
from facade.dialects import openai
from facade.routes.generation import generate, read_json, stream


async def create(request: web.Request) -> web.StreamResponse:
    """Answer a chat."""
    parsed = openai.parse_chat(await read_json(request))
    created = int(request.app[CONTEXT].source.now())
    if parsed.stream:
        encoder = openai.ChatStream(created=created, include_usage=parsed.include_usage)
        return await stream(request, parsed.request, encoder)
    return await generate(
        request, parsed.request, partial(openai.render_completion, created=created)
    )
