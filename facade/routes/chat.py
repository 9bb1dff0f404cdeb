"""POST /beta/v1/chat/completions."""

from collections.abc import Awaitable
from functools import partial

from facade.dialects import openai
from facade.endpoint import Answer, Body, EndpointSpec
from facade.http.exchange import Exchange
from facade.http.responses import Response
from facade.parsing import CHAT
from facade.routes.generation import generate, parse, stream


async def create(exchange: Exchange) -> Response:
    """Generate a chat completion."""
    parsed = await parse(exchange, CHAT)
    created = int(exchange.context.clock.now())
    response: Awaitable[Response]
    if parsed.stream:
        streaming = openai.FunctionChatStream if parsed.calls_functions else openai.ChatStream
        encoder = streaming(created=created, include_usage=parsed.include_usage)
        response = stream(exchange, parsed, encoder)
    else:
        render = openai.render_completion
        if parsed.calls_functions:
            render = openai.render_function_completion
        response = generate(exchange, parsed, partial(render, created=created))
    del parsed  # it may be megabytes, and an answer may take minutes
    return await response


_EXAMPLE = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}

ENDPOINTS = (
    EndpointSpec(
        method="POST",
        path="/beta/v1/chat/completions",
        handler=create,
        is_plain=True,
        operation_id="createChatCompletion",
        summary="Create a chat completion",
        body=Body(openai.ChatRequest, example=_EXAMPLE),
        answer=Answer("The answer", is_streamed=True),
    ),
)
