"""What chat completions and messages have in common: read, translate, call, translate back.

A conversation may have many megabytes, and an answer take minutes: nothing holds the body
beyond its reading, nor the request beyond its sending.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import hdrs, web

from facade.answers import Answer
from facade.bodies import ReceivedBody, complete_body
from facade.context import ANSWERED, API_KEY, CALLER_PATHS, CONTEXT, MODEL, REQUEST_ID, Answered
from facade.dialects.paths import CallerPaths
from facade.parsing import FIELD_NAMES, Kind, Option, Parsed
from facade.problems import unsupported_media_type
from facade.served import served_headers
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


def check_json(request: web.Request) -> None:
    """Check that a request says it is JSON.

    Raises:
        GatewayError: 415 for another content type.
    """
    # Parsing the value takes longer than all else here.
    if request.headers.get(hdrs.CONTENT_TYPE) == _JSON:
        return
    if request.content_type != _JSON:
        raise unsupported_media_type(request.content_type)


async def parse(request: web.Request, kind: Kind, **options: Option) -> Parsed:
    """Read and parse a request: its body, and the headers that belong to the caller's dialect.

    Raises:
        GatewayError: as `ReceivedBody` and `ParserPool.parse`; 415 for another content type.
    """
    check_json(request)
    if headers := of_request(_DIALECTS[kind], request.headers):
        options["headers"] = headers
    context = request.app[CONTEXT]
    max_body = context.settings.limits.max_body
    body = complete_body(request, max_body)
    if body is not None:
        held = [body]
        del body  # so that the memory of a large one can go as soon as it has been read
        parsed = await context.parser.parse(kind, held, **options)
    else:
        context.parser.expect(request.content_length or 0)
        async with ReceivedBody(request, max_body) as held:
            parsed = await context.parser.parse(kind, held, **options)
    request[MODEL] = parsed.model
    request[CALLER_PATHS] = CallerPaths(FIELD_NAMES[kind], parsed.origins)
    return parsed


def metadata(request: web.Request) -> Metadata:
    """Return the metadata that every call made for `request` carries."""
    carried = call_metadata(request[API_KEY], request[REQUEST_ID])
    passed = request.headers.get(HOPS_KEY)
    return carried if passed is None else (*carried, (HOPS_KEY, str(parse_hops(passed))))


def stream(request: web.Request, parsed: Parsed, encoder: Encoder) -> Awaitable[web.StreamResponse]:
    """Ask for an answer as it comes; give what answers with it."""
    inference = request.app[CONTEXT].inference
    call = inference.StreamGenerate(parsed.request, metadata=metadata(request))
    return relay(request, call, encoder)


def generate(
    request: web.Request,
    parsed: Parsed,
    render: Callable[[GenerateResponse], bytes],
) -> Awaitable[web.StreamResponse]:
    """Ask for a whole answer; give what answers with it.

    One that needs no translation goes as it came.
    """
    context = request.app[CONTEXT]
    call = context.inference.Generate(parsed.request, metadata=metadata(request))
    return _whole(request, call, render, context.source.now)


async def _whole(
    request: web.Request,
    call: Any,
    render: Callable[[GenerateResponse], bytes],
    now: Callable[[], float],
) -> Answer:
    response = await call
    request[ANSWERED] = Answered.of(response.served, response.usage)
    body = response.verbatim or render(response)
    return Answer(body, served_headers(response.served, request[CALLER_PATHS]), now())
