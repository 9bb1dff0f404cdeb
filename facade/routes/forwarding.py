"""Moderations, images, audio and rerankers: requests that are forwarded as they are."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import grpc
from pydantic import BaseModel

from facade.bodies import ReceivedBody
from facade.dialects.openai.errors import error_event
from facade.dialects.openai.forwarding import (
    FORWARD_NAMES,
    FormBody,
    ImageBody,
    ImageEditBody,
    ModerationBody,
    RerankBody,
    SpeechBody,
    parse_form,
)
from facade.dialects.paths import CallerPaths
from facade.endpoint import Answer, Body, EndpointSpec
from facade.failures import to_gateway_error
from facade.http.exchange import AnswerSummary, Exchange
from facade.http.responses import Response, StreamedResponse, TypedResponse
from facade.http_errors import unsupported_media_type
from facade.labels import label_metadata
from facade.parsing import FORWARDED
from facade.route_headers import answer_headers
from facade.routes.generation import parse, rpc_metadata
from facade.transfers.multipart import Mark, Parser, Part, boundary_of
from gateway.conversation.v1.conversation_pb2 import DIALECT_OPENAI, Usage
from gateway.inference.v1.inference_pb2 import FormPart
from services.common.grpc.dialect_headers import of_request
from services.common.process.byte_budget import request_charge
from services.common.process.offload import offload_if

_FORM: Final = "multipart/form-data"
# An edit of 16 images has 40 fields, and a list of keywords one for each; also in the proto.
_MAX_PARTS: Final = 512
_EVENTS: Final = "text/event-stream"
# A form of more bytes takes some milliseconds to parse, and is parsed in a thread.
_LARGE: Final = 1 << 20


async def forward(operation: str, exchange: Exchange) -> Response:
    """Forward a request with a JSON body."""
    parsed = await parse(exchange, FORWARDED, operation=operation)
    return await answer_to(exchange, _call(exchange, parsed.request))


async def forward_form(operation: str, exchange: Exchange) -> Response:
    """Forward a request whose body is a form."""
    return await answer_to(exchange, _call(exchange, await _parse_form(exchange, operation)))


async def forward_either(operation: str, exchange: Exchange) -> Response:
    """Forward a request whose body is JSON or a form."""
    handler = forward_form if exchange.content_type == _FORM else forward
    return await handler(operation, exchange)


def _call(exchange: Exchange, request: Any) -> Any:
    return exchange.context.inference.Forward(request, metadata=rpc_metadata(exchange))


async def _parse_form(exchange: Exchange, operation: str) -> Any:
    """Read and parse a form, as `generation.parse` does JSON.

    Raises:
        GatewayError: 415 for another content type; invalid, naming the field; as `ReceivedBody`.
    """
    if exchange.content_type != _FORM:
        raise unsupported_media_type(exchange.content_type, takes=_FORM)
    boundary = boundary_of(exchange.headers["content-type"])
    context = exchange.context
    received = ReceivedBody(exchange, context.settings.limits.max_body_bytes)
    async with received as held:
        is_large = len(held[0]) > _LARGE
        parts = await offload_if(is_large, _parts_of, held, boundary)
        parsed = parse_form(parts, operation)
        received.keep()
    if exchange.body_charge is not None:
        request_charge.set(exchange.body_charge)
    parsed.request.headers.update(of_request(DIALECT_OPENAI, exchange.headers))
    if context.labels is not None:
        exchange.labels = label_metadata(exchange.headers, parsed, context.labels)
    exchange.model, exchange.dialect = parsed.model, DIALECT_OPENAI
    exchange.caller_paths = CallerPaths(FORWARD_NAMES, parsed.source_map)
    return parsed.request


def _parts_of(held: list[bytes], boundary: bytes) -> Sequence[FormPart]:
    """Return the parts of a form, which is removed from the list.

    Raises:
        GatewayError: invalid, naming the part.
    """
    parser = Parser(boundary, _MAX_PARTS)
    parts: list[FormPart] = []
    pieces: list[bytes] = []
    for event in parser.feed(held.pop()):
        if isinstance(event, Part):
            parts.append(
                FormPart(name=event.name, filename=event.filename, content_type=event.content_type)
            )
        elif isinstance(event, bytes):
            pieces.append(event)
        elif event is Mark.PART:
            parts[-1].content = b"".join(pieces)
            pieces.clear()
    parser.close()
    return parts


async def answer_to(exchange: Exchange, call: Any) -> Response:
    """Respond with the answer: JSON and text whole, any other type as it arrives.

    Raises:
        grpc.aio.AioRpcError: the call failed before anything was sent; or an answer broke off that
            is no event stream, whose response then ends early.
    """
    begun = (await call.read()).events
    start = begun[0].start
    content_type = start.content_type
    kind = content_type.partition(";")[0].strip().lower()
    headers = answer_headers(exchange, start.route)
    is_whole = kind == "application/json" or (kind.startswith("text/") and kind != _EVENTS)
    response = None if is_whole else StreamedResponse(exchange, headers, content_type)
    exchange.first_content_s = exchange.context.clock.monotonic() - exchange.began
    pieces: list[bytes] = []
    usage = Usage()
    message: Any = None
    try:
        while message is not grpc.aio.EOF:
            for event in begun if message is None else message.events:
                if event.HasField("usage"):
                    usage = event.usage
                elif response is None:
                    pieces.append(event.data)
                else:
                    response.write(event.data)
            if response is not None and exchange.connection.writing_paused:
                await exchange.connection.drain()
            message = await call.read()
    except grpc.aio.AioRpcError as error:
        if response is None or kind != _EVENTS:
            raise
        failure = to_gateway_error(error, exchange)
        exchange.failure = failure.code
        response.write(error_event(failure), is_last=True)
        return response
    finally:
        exchange.answer_summary = AnswerSummary.of(start.route, usage)
    if response is None:
        return TypedResponse(b"".join(pieces), content_type, headers)
    response.write(is_last=True)
    return response


def _endpoint(
    path: str,
    operation: str,
    operation_id: str,
    summary: str,
    body: type[BaseModel],
    *,
    is_form: bool = False,
    example: Any = None,
    media_type: str = "application/json",
    is_streamed: bool = False,
) -> EndpointSpec:
    """Return the spec of an endpoint; `media_type` and `is_streamed` are those of its answer."""
    handler = forward
    if operation == "OPERATION_IMAGE_EDIT":
        handler = forward_either
    elif is_form:
        handler = forward_form
    return EndpointSpec(
        method="POST",
        path=f"/beta/v1/{path}",
        handler=partial(handler, operation),
        operation_id=operation_id,
        summary=summary,
        body=Body(body, _FORM if is_form else "application/json", example=example),
        answer=Answer("The provider's answer", media_type=media_type, is_streamed=is_streamed),
    )


ENDPOINTS = (
    _endpoint(
        "moderations",
        "OPERATION_MODERATION",
        "createModeration",
        "Classify texts and images as harmful or not",
        ModerationBody,
        example={"input": "Hello"},
    ),
    _endpoint(
        "images/generations",
        "OPERATION_IMAGE_GENERATION",
        "createImage",
        "Create images",
        ImageBody,
        example={"model": "gpt-image-1", "prompt": "A red bicycle"},
        is_streamed=True,
    ),
    _endpoint(
        "images/edits",
        "OPERATION_IMAGE_EDIT",
        "createImageEdit",
        "Edit images, which are sent as a form or in JSON",
        ImageEditBody,
        is_form=True,
        is_streamed=True,
    ),
    _endpoint(
        "images/variations",
        "OPERATION_IMAGE_VARIATION",
        "createImageVariation",
        "Create variations of an image",
        FormBody,
        is_form=True,
    ),
    _endpoint(
        "audio/speech",
        "OPERATION_SPEECH",
        "createSpeech",
        "Speak a text",
        SpeechBody,
        example={"model": "gpt-4o-mini-tts", "input": "Hello", "voice": "alloy"},
        media_type="*/*",
        is_streamed=True,
    ),
    _endpoint(
        "audio/transcriptions",
        "OPERATION_TRANSCRIPTION",
        "createTranscription",
        "Write down what a recording says",
        FormBody,
        is_form=True,
        is_streamed=True,
    ),
    _endpoint(
        "audio/translations",
        "OPERATION_TRANSLATION",
        "createTranslation",
        "Write down in English what a recording says",
        FormBody,
        is_form=True,
    ),
    _endpoint(
        "rerank",
        "OPERATION_RERANK",
        "rerank",
        "Order documents by how well they match a query",
        RerankBody,
        example={"model": "reranker", "query": "dogs", "documents": ["a cat", "a dog"]},
    ),
)
