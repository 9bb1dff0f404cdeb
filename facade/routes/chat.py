"""POST /beta/v1/chat/completions."""

from collections.abc import Awaitable
from functools import partial

from facade.chat_storage import ChatStore, StoredChatStream
from facade.dialects import openai
from facade.dialects.parsed_request import ParsedRequest, StoredChat
from facade.endpoint import Answer, Body, EndpointSpec
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.parsing import CHAT
from facade.routes.generation import generate, parse, rpc_metadata, stream


async def create(exchange: Exchange) -> Response:
    """Generate a chat completion."""
    parsed = await parse(exchange, CHAT)
    created = int(exchange.context.clock.now())
    if parsed.stored is not None:
        return await _create_stored(exchange, parsed, parsed.stored, created)
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


async def _create_stored(
    exchange: Exchange, parsed: ParsedRequest, stored: StoredChat, created: int
) -> Response:
    """Generate a chat completion, and store it before its end is sent."""
    store = ChatStore(exchange.context, rpc_metadata(exchange), stored)
    await store.check_capacity()
    if parsed.stream:
        streaming = openai.FunctionChatStream if parsed.calls_functions else openai.ChatStream
        encoder = StoredChatStream(
            store, streaming(created=created, include_usage=parsed.include_usage)
        )
        return await stream(exchange, parsed, encoder, encoder)
    render = openai.render_completion
    if parsed.calls_functions:
        render = openai.render_function_completion
    response = await generate(exchange, parsed, partial(render, created=created))
    if isinstance(response, JsonResponse):
        body = await store.store_whole(response.body)
        return JsonResponse(body, response.headers)
    return response


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
