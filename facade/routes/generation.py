"""Common parts of chat completions and messages: parse, call the service, respond.

A conversation may have many megabytes, and an answer take minutes: nothing keeps the body after
it has been parsed, nor the request after it has been sent.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from facade.bodies import ReceivedBody, complete_body
from facade.context import (
    ServedAnswer,
)
from facade.dialects.paths import CallerPaths
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.http_errors import unsupported_media_type
from facade.middlewares import EXCHANGE
from facade.parsing import FIELD_NAMES, Kind, Option, Parsed
from facade.served_headers import served_headers
from facade.sse import Encoder, relay
from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Dialect
from gateway.inference.v1.inference_pb2 import GenerateResponse
from services.common.channels import Metadata, call_metadata
from services.common.dialect_headers import of_request
from services.common.hops import HOPS_KEY, parse_hops

_JSON = "application/json"
_DIALECTS: Mapping[Kind, Dialect.ValueType] = {
    "chat": conversation_pb2.DIALECT_OPENAI,
    "messages": conversation_pb2.DIALECT_ANTHROPIC,
    "count_tokens": conversation_pb2.DIALECT_ANTHROPIC,
}


def check_json(exchange: Exchange) -> None:
    """Check that the content type of a request is JSON.

    Raises:
        GatewayError: 415 for another content type.
    """
    # Parsing the value takes longer than all else here.
    if exchange.headers.get("content-type") == _JSON:
        return
    if exchange.content_type != _JSON:
        raise unsupported_media_type(exchange.content_type)


async def parse(exchange: Exchange, kind: Kind, **options: Option) -> Parsed:
    """Read and parse a request: its body, and the headers that belong to the caller's dialect.

    Raises:
        GatewayError: as `ReceivedBody` and `ParserPool.parse`; 415 for another content type.
    """
    check_json(exchange)
    if headers := of_request(_DIALECTS[kind], exchange.headers):
        options["headers"] = headers
    context = exchange.context
    max_body_bytes = context.settings.limits.max_body_bytes
    body = complete_body(exchange, max_body_bytes)
    if body is not None:
        held = [body]
        del body  # so that the memory of a large one can go as soon as it has been read
        parsed = await context.parser.parse(kind, held, **options)
    else:
        context.parser.expect(exchange.content_length)
        async with ReceivedBody(exchange, max_body_bytes) as held:
            parsed = await context.parser.parse(kind, held, **options)
    exchange.model = parsed.model
    exchange.caller_paths = CallerPaths(FIELD_NAMES[kind], parsed.origins)
    return parsed


def rpc_metadata(exchange: Exchange) -> Metadata:
    """Return the metadata that every call made for a request carries."""
    carried = call_metadata(exchange.api_key, exchange.request_id)
    passed = exchange.headers.get(HOPS_KEY)
    return carried if passed is None else (*carried, (HOPS_KEY, str(parse_hops(passed))))


def metadata(request: web.Request) -> Metadata:
    """Return the metadata that every call made for a request of aiohttp's carries."""
    return rpc_metadata(request[EXCHANGE])


def stream(exchange: Exchange, parsed: Parsed, encoder: Encoder) -> Awaitable[Response]:
    """Start a streamed call; return the coroutine that answers the request with it."""
    inference = exchange.context.inference
    call = inference.StreamGenerate(parsed.request, metadata=rpc_metadata(exchange))
    return relay(exchange, call, encoder)


def generate(
    exchange: Exchange,
    parsed: Parsed,
    render: Callable[[GenerateResponse], bytes],
) -> Awaitable[Response]:
    """Start a unary call; return the coroutine that answers the request with it.

    An answer that needs no translation goes as it came.
    """
    inference = exchange.context.inference
    call = inference.Generate(parsed.request, metadata=rpc_metadata(exchange))
    return _whole(exchange, call, render)


async def _whole(
    exchange: Exchange, call: Any, render: Callable[[GenerateResponse], bytes]
) -> Response:
    response = await call
    served = response.served
    exchange.served = ServedAnswer.of(served, response.usage)
    return JsonResponse(
        response.passthrough or render(response), served_headers(served, exchange.caller_paths)
    )
