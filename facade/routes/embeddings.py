"""POST /beta/v1/embeddings."""

from collections.abc import Awaitable
from typing import Any

from facade.dialects import openai
from facade.dialects.parsed_request import ParsedRequest
from facade.endpoint import Answer, Body, EndpointSpec
from facade.http.exchange import AnswerSummary, Exchange
from facade.http.responses import JsonResponse, Response
from facade.parsing import EMBEDDINGS
from facade.route_headers import answer_headers
from facade.routes.generation import parse, rpc_metadata
from gateway.conversation.v1.conversation_pb2 import Usage
from gateway.inference.v1.inference_pb2 import EmbedResponse
from services.common.process.offload import offload_if

# Packed vectors of more bytes take some milliseconds to render, and are rendered in a thread.
_LARGE = 1 << 18


async def create(exchange: Exchange) -> Response:
    """Create embeddings of texts."""
    # No local name for the parsed request: it may be megabytes, and an answer may take minutes.
    return await _begin(exchange, await parse(exchange, EMBEDDINGS))


def _begin(exchange: Exchange, parsed: ParsedRequest) -> Awaitable[Response]:
    inference = exchange.context.inference
    call = inference.Embed(parsed.request, metadata=rpc_metadata(exchange))
    return _answer(exchange, call, base64=parsed.base64)


async def _answer(exchange: Exchange, call: Any, *, base64: bool) -> Response:
    response = await call
    exchange.answer_summary = AnswerSummary.of(
        response.route, Usage(input_tokens=response.input_tokens)
    )
    headers = answer_headers(exchange, response.route)
    if response.estimated:
        headers["x-gateway-estimate"] = "true"
    return JsonResponse(response.passthrough or await _render(response, base64=base64), headers)


async def _render(response: EmbedResponse, *, base64: bool) -> bytes:
    is_large = sum(map(len, response.vectors)) > _LARGE
    return await offload_if(is_large, openai.render_embeddings, response, base64=base64)


ENDPOINTS = (
    EndpointSpec(
        method="POST",
        path="/beta/v1/embeddings",
        handler=create,
        is_plain=True,
        operation_id="createEmbedding",
        summary="Create embeddings",
        body=Body(openai.EmbeddingsRequest, example={"model": "sandbox/embed", "input": "Hello"}),
        answer=Answer("The answer"),
    ),
)
