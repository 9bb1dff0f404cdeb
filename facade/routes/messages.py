"""The messages endpoint under /beta/v1, and its sibling for coding agents under /coding/v1."""

from collections.abc import Awaitable

from facade.context import ServedAnswer
from facade.dialects import anthropic
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.parsing import Parsed
from facade.routes.generation import generate, parse, rpc_metadata, stream
from facade.served_headers import served_headers
from gateway.conversation.v1.conversation_pb2 import Usage
from services.common.errors import invalid


async def create(exchange: Exchange) -> Response:
    """Answer a conversation."""
    return await _create(exchange, coding=False)


async def create_coding(exchange: Exchange) -> Response:
    """Answer a coding agent's conversation."""
    return await _create(exchange, coding=True)


async def count_tokens(exchange: Exchange) -> Response:
    """Count what a conversation would read."""
    return await _count_tokens(exchange, coding=False)


async def count_coding_tokens(exchange: Exchange) -> Response:
    """Count what a coding agent's conversation would read."""
    return await _count_tokens(exchange, coding=True)


async def _create(exchange: Exchange, *, coding: bool) -> Response:
    betas = _betas(exchange)
    # No name here for what is parsed: it may have megabytes, and an answer take minutes.
    return await _begin(exchange, await parse(exchange, "messages", betas=betas, coding=coding))


def _begin(exchange: Exchange, parsed: Parsed) -> Awaitable[Response]:
    if parsed.stream:
        encoder = anthropic.MessageStream(exchange.request_id)
        return stream(exchange, parsed, encoder)
    return generate(exchange, parsed, anthropic.render_message)


async def _count_tokens(exchange: Exchange, *, coding: bool) -> Response:
    betas = _betas(exchange)
    parsed = await parse(exchange, "count_tokens", betas=betas, coding=coding)
    inference = exchange.context.inference
    counted = await inference.CountTokens(parsed.request, metadata=rpc_metadata(exchange))
    exchange.served = ServedAnswer.of(counted.served, Usage(input_tokens=counted.input_tokens))
    headers = served_headers(counted.served, exchange.caller_paths)
    if counted.estimated:
        headers["x-gateway-estimate"] = "true"
    return JsonResponse(anthropic.render_count(counted), headers)


def _betas(exchange: Exchange) -> list[str]:
    """Return the names in `anthropic-beta`, which may come in several headers.

    Raises:
        GatewayError: invalid, when they are no words.
    """
    lines = exchange.header_lines("anthropic-beta")
    for line in lines:
        if not (line.isascii() and line.isprintable()):
            raise invalid("anthropic-beta", "anthropic-beta: names of beta features are needed")
    return [name for line in lines for part in line.split(",") if (name := part.strip())]
