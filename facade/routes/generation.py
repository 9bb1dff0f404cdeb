"""What chat completions and messages have in common: read, translate, call, translate back.

A conversation may have many megabytes, and an answer take minutes: nothing holds the body
beyond its reading, nor the request beyond its sending.
"""

from collections.abc import Awaitable, Callable
from io import BytesIO
from typing import Any

from aiohttp import web

from facade.answers import Answer
from facade.context import API_KEY, CONTEXT, REQUEST_ID
from facade.problems import unsupported_media_type
from facade.served import served_headers
from facade.sse import Encoder, relay
from gateway.inference.v1.inference_pb2 import GenerateRequest, GenerateResponse
from services.common.channels import Metadata, call_metadata


async def read_json(request: web.Request) -> bytes:
    """Give the body of a request that says it is JSON.

    Raises:
        GatewayError: 415 for another content type.
        aiohttp.web.HTTPRequestEntityTooLarge: the body is larger than `limits.max_body`.
    """
    if request.content_type != "application/json":
        raise unsupported_media_type(request.content_type)
    content, limit = request.content, request.app[CONTEXT].settings.limits.max_body
    # Not `request.read()`, which keeps the body for as long as the answer takes; and not
    # its pieces joined, which would be there twice.
    body = BytesIO()
    while piece := await content.readany():
        body.write(piece)
        if body.tell() > limit:
            raise web.HTTPRequestEntityTooLarge(limit)
    return body.getvalue()


def metadata(request: web.Request) -> Metadata:
    """Give the metadata that every call made for `request` carries."""
    return call_metadata(request[API_KEY], request[REQUEST_ID])


def stream(
    request: web.Request, wanted: GenerateRequest, encoder: Encoder
) -> Awaitable[web.StreamResponse]:
    """Ask for an answer as it comes; give what answers with it."""
    call = request.app[CONTEXT].inference.StreamGenerate(wanted, metadata=metadata(request))
    return relay(request, call, encoder)


def generate(
    request: web.Request,
    wanted: GenerateRequest,
    render: Callable[[GenerateResponse], bytes],
) -> Awaitable[web.StreamResponse]:
    """Ask for a whole answer; give what answers with it.

    One that needs no translation goes as it came.
    """
    wanted.takes_verbatim = True
    context = request.app[CONTEXT]
    call = context.inference.Generate(wanted, metadata=metadata(request))
    return _whole(call, render, context.source.now)


async def _whole(
    call: Any, render: Callable[[GenerateResponse], bytes], now: Callable[[], float]
) -> Answer:
    response = await call
    body = response.verbatim or render(response)
    return Answer(body, served_headers(response.served), now())
