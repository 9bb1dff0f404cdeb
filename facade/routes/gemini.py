"""Google's generation of content, token counts and embeddings, under /v1beta."""

from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any

import grpc

from facade.dialects import gemini
from facade.dialects.json_schemas import NAME
from facade.dialects.parsed_request import ParsedRequest
from facade.dialects.stream_formats import StreamFormat
from facade.endpoint import Answer, Body, EndpointSpec, path_parameter, query_parameter
from facade.failures import to_gateway_error
from facade.http.exchange import AnswerSummary, Exchange
from facade.http.responses import JsonResponse, Response, TypedResponse
from facade.parsing import (
    BATCH_EMBED_CONTENTS,
    COUNT_CONTENT_TOKENS,
    EMBED_CONTENT,
    GENERATE_CONTENT,
)
from facade.route_headers import answer_headers
from facade.routes.generation import generate, parse, rpc_metadata, stream
from gateway.conversation.v1.conversation_pb2 import Usage
from gateway.inference.v1.inference_pb2 import EmbedResponse
from services.common.errors import GatewayError, invalid
from services.common.process.offload import offload_if

_ALT, _SSE = "alt", "sse"
_FORMS = (_SSE, "json", "")
# Packed vectors of more bytes take some milliseconds to render, and are rendered in a thread.
_LARGE = 1 << 18


async def generate_content(exchange: Exchange) -> Response:
    """Generate an answer."""
    parsed = await parse(exchange, GENERATE_CONTENT, model=_model(exchange), stream=False)
    render = partial(gemini.render_content, includes_thoughts=parsed.includes_thoughts)
    response = generate(exchange, parsed, render)
    del parsed  # it may be megabytes, and an answer may take minutes
    return await _or_blocked(exchange, response)


async def stream_generate_content(exchange: Exchange) -> Response:
    """Stream an answer, as server-sent events or as a JSON array."""
    form = exchange.query.get(_ALT, "")
    if form not in _FORMS:
        raise invalid(_ALT, f"{_ALT}: must be sse or json")
    parsed = await parse(exchange, GENERATE_CONTENT, model=_model(exchange), stream=True)
    encoder = gemini.ContentStream(
        includes_thoughts=parsed.includes_thoughts, is_array=form != _SSE
    )
    response = stream(exchange, parsed, encoder)
    del parsed  # it may be megabytes, and an answer may take minutes
    return await _or_blocked(exchange, response, encoder.format)


async def _or_blocked(
    exchange: Exchange, response: Awaitable[Response], stream_format: StreamFormat | None = None
) -> Response:
    """Return a response, or Google's answer to a prompt that a provider's filter has blocked.

    Args:
        exchange: the request.
        response: the response.
        stream_format: the format of a streamed response; None for a whole one.
    """
    try:
        return await response
    except GatewayError as error:
        failure = error
    except grpc.aio.AioRpcError as error:
        failure = to_gateway_error(error, exchange)
    blocked = None if exchange.has_begun else gemini.render_blocked(failure)
    if blocked is None:
        raise failure
    exchange.failure = failure.code
    if stream_format is None:
        return JsonResponse(blocked)
    return TypedResponse(gemini.whole_stream(blocked, stream_format), stream_format.content_type)


async def count_tokens(exchange: Exchange) -> Response:
    """Count the input tokens of a request."""
    parsed = await parse(exchange, COUNT_CONTENT_TOKENS, model=_model(exchange))
    inference = exchange.context.inference
    counted = await inference.CountTokens(parsed.request, metadata=rpc_metadata(exchange))
    exchange.answer_summary = AnswerSummary.of(
        counted.route, Usage(input_tokens=counted.input_tokens)
    )
    headers = answer_headers(exchange, counted.route)
    if counted.estimated:
        headers["x-gateway-estimate"] = "true"
    return JsonResponse(gemini.render_count(counted), headers)


async def embed_content(exchange: Exchange) -> Response:
    """Embed one text."""
    parsed = await parse(exchange, EMBED_CONTENT, model=_model(exchange))
    return await _embed(exchange, parsed, is_batch=False)


async def batch_embed_contents(exchange: Exchange) -> Response:
    """Embed several texts."""
    parsed = await parse(exchange, BATCH_EMBED_CONTENTS, model=_model(exchange))
    return await _embed(exchange, parsed, is_batch=True)


async def _embed(exchange: Exchange, parsed: ParsedRequest, *, is_batch: bool) -> Response:
    call = exchange.context.inference.Embed(parsed.request, metadata=rpc_metadata(exchange))
    del parsed
    response: EmbedResponse = await call
    exchange.answer_summary = AnswerSummary.of(
        response.route, Usage(input_tokens=response.input_tokens)
    )
    headers = answer_headers(exchange, response.route)
    if response.estimated:
        headers["x-gateway-estimate"] = "true"
    is_large = sum(map(len, response.vectors)) > _LARGE
    body = await offload_if(is_large, gemini.render_embeddings, response, is_batch=is_batch)
    return JsonResponse(body, headers)


def _model(exchange: Exchange) -> str:
    """Return the model that the path names."""
    return gemini.model_name(exchange.path_values["model"])


_NAME = path_parameter("model", NAME, "Any model name that requests accept; may contain slashes.")
_CONTENTS: Mapping[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}
_TEXT: Mapping[str, Any] = {"content": {"parts": [{"text": "Hello"}]}}
_PATH = "/v1beta/models/{model:.+}"


# Names of operations that another dialect has too.
_OPERATIONS = {"countTokens": "countContentTokens"}


def _post(method: str, handler: Any, summary: str, body: Body, **others: Any) -> EndpointSpec:
    return EndpointSpec(
        method="POST",
        path=f"{_PATH}:{method}",
        handler=handler,
        operation_id=_OPERATIONS.get(method, method),
        summary=summary,
        body=body,
        **{"parameters": [_NAME], "answer": Answer("The answer"), **others},
    )


ENDPOINTS = (
    _post(
        "generateContent",
        generate_content,
        "Generate an answer in Google's format",
        Body(gemini.GenerateContentBody, example=_CONTENTS),
    ),
    _post(
        "streamGenerateContent",
        stream_generate_content,
        "Stream an answer in Google's format",
        Body(gemini.GenerateContentBody, example=_CONTENTS),
        parameters=[
            _NAME,
            query_parameter(
                _ALT, {"enum": [_SSE, "json"]}, "`sse`: server-sent events; else a JSON array."
            ),
        ],
        answer=Answer("The answer", is_streamed=True),
    ),
    _post(
        "countTokens",
        count_tokens,
        "Count the input tokens of a request in Google's format",
        Body(gemini.CountTokensBody, example=_CONTENTS),
    ),
    _post(
        "embedContent",
        embed_content,
        "Embed a text in Google's format",
        Body(gemini.EmbedContentBody, example=_TEXT),
    ),
    _post(
        "batchEmbedContents",
        batch_embed_contents,
        "Embed texts in Google's format",
        Body(gemini.BatchEmbedContentsBody, example={"requests": [_TEXT]}),
    ),
)
