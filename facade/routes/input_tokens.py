"""POST /beta/v1/responses/input_tokens."""

import orjson

from facade.dialects import responses
from facade.endpoint import Answer, Body, EndpointSpec
from facade.http.exchange import AnswerSummary, Exchange
from facade.http.responses import JsonResponse, Response
from facade.parsing import RESPONSES
from facade.response_conversations import complete, insert_previous_items
from facade.route_headers import answer_headers
from facade.routes.generation import parse, rpc_metadata
from gateway.conversation.v1.conversation_pb2 import Usage
from services.common.process.byte_budget import request_charge


async def count_input_tokens(exchange: Exchange) -> Response:
    """Count the input tokens of a request for a response, without storing anything."""
    parsed = await parse(exchange, RESPONSES)
    state = parsed.state
    assert state is not None
    metadata = rpc_metadata(exchange)
    with exchange.charge() as charge:
        if state.uses_stored_items:
            await insert_previous_items(exchange, parsed, state, metadata, charge)
            request_charge.set(charge)
        request = complete(parsed.request)
        counted = await exchange.context.inference.CountTokens(request, metadata=metadata)
    exchange.answer_summary = AnswerSummary.of(
        counted.route, Usage(input_tokens=counted.input_tokens)
    )
    headers = answer_headers(exchange, counted.route)
    if counted.estimated:
        headers["x-gateway-estimate"] = "true"
    body = {"object": "response.input_tokens", "input_tokens": counted.input_tokens}
    return JsonResponse(orjson.dumps(body), headers)


ENDPOINTS = (
    EndpointSpec(
        method="POST",
        path="/beta/v1/responses/input_tokens",
        handler=count_input_tokens,
        operation_id="countInputTokens",
        summary="Count the input tokens of a request for a response",
        body=Body(responses.ResponseRequest, example={"model": "sandbox/echo", "input": "Hello"}),
        answer=Answer("The number of tokens"),
    ),
)
