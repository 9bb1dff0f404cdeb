"""POST /beta/v1/responses/compact."""

from functools import partial

from facade.dialects import responses
from facade.dialects.responses.compaction import COMPACTED, check_compact, render_compacted
from facade.endpoint import Answer, Body, EndpointSpec
from facade.http.exchange import Exchange
from facade.http.responses import Response
from facade.parsing import RESPONSES
from facade.response_conversations import complete, insert_previous_items
from facade.routes.generation import generate, parse, rpc_metadata
from gateway.inference.v1.inference_pb2 import Compaction
from services.common.ids import new_response_id
from services.common.process.byte_budget import request_charge
from services.common.process.offload import offload_if

# Requests of more bytes are copied in a thread.
_LARGE = 1 << 20


async def compact(exchange: Exchange) -> Response:
    """Return a conversation with a summary in place of its older part; store nothing."""
    parsed = await parse(exchange, RESPONSES)
    state = parsed.state
    assert state is not None
    with exchange.charge() as charge:
        if state.previous_response_id is not None or state.references:
            metadata = rpc_metadata(exchange)
            await insert_previous_items(exchange, parsed, state, metadata, charge)
            request_charge.set(charge)
        is_large = parsed.request.ByteSize() > _LARGE
        parsed.request = await offload_if(is_large, complete, parsed.request)
        check_compact(parsed)
        parsed.request.compaction.mode = Compaction.MODE_ENDPOINT
        created = int(exchange.context.clock.now())
        render = partial(render_compacted, response_id=new_response_id(), created=created)
        return await generate(exchange, parsed, render)


_EXAMPLE = {
    "model": "sandbox/echo",
    "input": [
        {"role": "user", "content": "My dog is called Rex."},
        {"role": "assistant", "content": "A fine name."},
    ],
}

ENDPOINTS = (
    EndpointSpec(
        method="POST",
        path="/beta/v1/responses/compact",
        handler=compact,
        operation_id="compactResponse",
        summary="Compact a conversation",
        body=Body(responses.ResponseRequest, example=_EXAMPLE),
        answer=Answer("The compacted conversation", [COMPACTED]),
    ),
)
