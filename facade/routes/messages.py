"""The messages endpoints under /beta/v1, and under /coding/v1 for coding agents."""

from collections.abc import Awaitable, Iterator
from functools import partial

from facade.dialects import anthropic
from facade.endpoint import Answer, Body, EndpointSpec
from facade.http.exchange import AnswerSummary, Exchange
from facade.http.responses import JsonResponse, Response
from facade.parsing import COUNT_TOKENS, MESSAGES
from facade.route_headers import answer_headers
from facade.routes.generation import generate, parse, rpc_metadata, stream
from gateway.conversation.v1.conversation_pb2 import Usage
from services.common.errors import invalid


async def create(exchange: Exchange, *, coding: bool = False) -> Response:
    """Generate a message; `coding` selects the rules for coding agents."""
    betas = _betas(exchange)
    parsed = await parse(exchange, MESSAGES, betas=betas, coding=coding)
    response: Awaitable[Response]
    if parsed.stream:
        response = stream(exchange, parsed, anthropic.MessageStream(exchange.request_id))
    else:
        response = generate(exchange, parsed, anthropic.render_message)
    del parsed  # it may be megabytes, and an answer may take minutes
    return await response


async def count_tokens(exchange: Exchange, *, coding: bool = False) -> Response:
    """Count the input tokens of a conversation; `coding` selects the rules for coding agents."""
    betas = _betas(exchange)
    parsed = await parse(exchange, COUNT_TOKENS, betas=betas, coding=coding)
    inference = exchange.context.inference
    counted = await inference.CountTokens(parsed.request, metadata=rpc_metadata(exchange))
    exchange.answer_summary = AnswerSummary.of(
        counted.route, Usage(input_tokens=counted.input_tokens)
    )
    headers = answer_headers(exchange, counted.route)
    if counted.estimated:
        headers["x-gateway-estimate"] = "true"
    return JsonResponse(anthropic.render_count(counted), headers)


def _betas(exchange: Exchange) -> list[str]:
    """Return the names in the `anthropic-beta` headers.

    Raises:
        GatewayError: invalid, if a name is malformed.
    """
    if "anthropic-beta" not in exchange.headers:
        return []
    lines = exchange.header_lines("anthropic-beta")
    for line in lines:
        if not (line.isascii() and line.isprintable()):
            raise invalid(
                "anthropic-beta", "anthropic-beta: must contain only printable ASCII characters"
            )
    return [name for line in lines for part in line.split(",") if (name := part.strip())]


_COUNTED = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}


def _endpoints(prefix: str, name: str, *, coding: bool) -> Iterator[EndpointSpec]:
    yield EndpointSpec(
        method="POST",
        path=f"{prefix}/messages",
        handler=partial(create, coding=coding),
        is_plain=True,
        operation_id=f"create{name}Message",
        summary="Create a message",
        body=Body(anthropic.MessagesBody, example={**_COUNTED, "max_tokens": 100}),
        answer=Answer("The answer", is_streamed=True),
    )
    yield EndpointSpec(
        method="POST",
        path=f"{prefix}/messages/count_tokens",
        handler=partial(count_tokens, coding=coding),
        operation_id=f"count{name}Tokens",
        summary="Count the input tokens of a conversation",
        body=Body(anthropic.CountTokensBody, example=_COUNTED),
        answer=Answer("The answer"),
    )


ENDPOINTS = (
    *_endpoints("/beta/v1", "", coding=False),
    *_endpoints("/coding/v1", "Coding", coding=True),
)
