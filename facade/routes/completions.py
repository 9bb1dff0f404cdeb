"""POST /beta/v1/completions: legacy completions, over models that only chat too."""

import asyncio
from typing import Any

import grpc
import orjson

from facade.dialects import openai
from facade.dialects.openai.completions import (
    CompletionStream,
    chat_body,
    prompts_of,
    render_completions,
)
from facade.dialects.openai.forwarding import CompletionBody
from facade.endpoint import Answer, Body, EndpointSpec
from facade.http.exchange import AnswerSummary, Exchange
from facade.http.responses import JsonResponse, Response
from facade.parsing import FORWARDED
from facade.route_headers import answer_headers
from facade.routes.forwarding import answer_to
from facade.routes.generation import parse, rpc_metadata, stream
from gateway.conversation.v1.conversation_pb2 import Usage
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import ForwardRequest
from services.common.errors import from_rpc_error, invalid
from services.common.messages.lazy_request import LazyRequest

_OPERATION = "OPERATION_COMPLETION"
_MODEL = "model"
# Answers to the prompts of one request that are generated at once.
_AT_ONCE = 4


async def create(exchange: Exchange) -> Response:
    """Generate a completion: as the provider does, or as answers to messages of a user."""
    parsed = await parse(exchange, FORWARDED, operation=_OPERATION)
    request: ForwardRequest = parsed.request
    metadata = rpc_metadata(exchange)
    try:
        call = exchange.context.inference.Forward(request, metadata=metadata)
        return await answer_to(exchange, call)
    except grpc.aio.AioRpcError as error:
        failure = from_rpc_error(error)
        if failure.reason != errors_pb2.REASON_UNSUPPORTED or failure.param != _MODEL:
            raise
    return await _chat(exchange, request)


async def _chat(exchange: Exchange, request: ForwardRequest) -> Response:
    """Respond with the answers of a model that only chats.

    Raises:
        GatewayError: invalid or unsupported, naming the field.
    """
    try:
        body: dict[str, Any] = orjson.loads(request.json)
    except orjson.JSONDecodeError:
        raise invalid("", "the body: has a number that no double holds") from None
    prompts = prompts_of(body)
    chats = [openai.parse_chat(chat_body(body, one, request.model), lazily=True) for one in prompts]
    for chat in chats:
        generated = chat.request
        inner = generated.request if isinstance(generated, LazyRequest) else generated
        inner.headers.update(request.headers)
        inner.fallback = request.fallback
        if request.HasField("fallback_config"):
            inner.fallback_config.CopyFrom(request.fallback_config)
    created = int(exchange.context.clock.now())
    echoed = prompts if body.get("echo") else [""] * len(prompts)
    if chats[0].stream:
        encoder = CompletionStream(created, echoed[0], include_usage=chats[0].include_usage)
        return await stream(exchange, chats[0], encoder)
    places = asyncio.Semaphore(_AT_ONCE)

    async def answer(chat: Any) -> Any:
        async with places:
            return await exchange.context.inference.Generate(
                chat.request, metadata=rpc_metadata(exchange)
            )

    tasks = [asyncio.ensure_future(answer(chat)) for chat in chats]
    try:
        answers = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    usage = Usage(
        input_tokens=sum(answer.usage.input_tokens for answer in answers),
        output_tokens=sum(answer.usage.output_tokens for answer in answers),
    )
    route = answers[0].route
    exchange.answer_summary = AnswerSummary.of(route, usage)
    rendered = render_completions(answers, echoed, created)
    return JsonResponse(rendered, answer_headers(exchange, route))


ENDPOINTS = (
    EndpointSpec(
        method="POST",
        path="/beta/v1/completions",
        handler=create,
        operation_id="createCompletion",
        summary="Create a legacy completion",
        body=Body(CompletionBody, example={"model": "sandbox/echo", "prompt": "Hello"}),
        answer=Answer("The answer", is_streamed=True),
    ),
)
