"""The endpoint that returns a picture of a document, which need not be the caller's file."""

import logging
from typing import Any

import grpc

from facade.dialects.articles import bodies, requests
from facade.endpoint import Answer, Body, EndpointSpec
from facade.http.exchange import Exchange
from facade.http.responses import Response, SizedResponse
from facade.routes.articles.call import PREFIX, receive
from facade.routes.generation import rpc_metadata
from facade.transfers import downloads
from services.common.errors import from_rpc_error

log = logging.getLogger(__name__)

_INLINE_NAME = "image"


async def image(exchange: Exchange) -> Response:
    """Return the content of a picture."""
    _, message = await receive(exchange, bodies.ReadImage, requests.read_image)
    method: Any = exchange.context.articles.ReadImage
    call = method(message, metadata=rpc_metadata(exchange))
    try:
        opening = (await call.read()).opening
        headers = {
            "Content-Type": opening.mime_type,
            "Content-Disposition": downloads.disposition(opening.filename or _INLINE_NAME),
            "X-Content-Type-Options": "nosniff",
        }
        response = SizedResponse(exchange, opening.size_bytes, headers)
        try:
            while (part := await call.read()) is not grpc.aio.EOF:
                await response.write(part.chunk)
        except grpc.aio.AioRpcError as error:
            # After the headers, a failure can only be signalled by ending before Content-Length.
            log.warning("download interrupted", extra={"reason": from_rpc_error(error).code})
        await response.end()
        return response
    finally:
        call.cancel()


ENDPOINT = EndpointSpec(
    method="POST",
    path=PREFIX + "doc/image",
    handler=image,
    operation_id="readImage",
    summary="Get the content of a picture; readers of a document need not own its files",
    body=Body(
        bodies.ReadImage,
        example={"sessionId": "session_01M8XK3V7A", "blockId": "block_figure", "index": 0},
    ),
    answer=Answer("The content", [{}], "*/*"),
    schema_prefix="articles.",
)
