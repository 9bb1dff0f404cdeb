"""What chat completions and messages have in common: read, translate, call, translate back."""

from collections.abc import Callable

from aiohttp import web

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
    return await request.read()


def metadata(request: web.Request) -> Metadata:
    """Give the metadata that every call made for `request` carries."""
    return call_metadata(request[API_KEY], request[REQUEST_ID])


async def stream(
    request: web.Request, wanted: GenerateRequest, encoder: Encoder
) -> web.StreamResponse:
    """Answer with the answer as it comes."""
    call = request.app[CONTEXT].inference.StreamGenerate(wanted, metadata=metadata(request))
    return await relay(request, call, encoder)


async def generate(
    request: web.Request,
    wanted: GenerateRequest,
    render: Callable[[GenerateResponse], bytes],
) -> web.Response:
    """Answer with a whole answer."""
    inference = request.app[CONTEXT].inference
    response = await inference.Generate(wanted, metadata=metadata(request))
    return web.Response(
        body=render(response),
        content_type="application/json",
        headers=served_headers(response.served),
    )
