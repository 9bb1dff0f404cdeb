"""POST /beta/v1/responses."""

from collections.abc import Awaitable
from functools import partial

from facade.dialects.responses import (
    ResponseState,
    ResponseStream,
    pass_on_response,
    render_response,
)
from facade.http.exchange import Exchange
from facade.http.responses import Response
from facade.parsing import Parsed
from facade.routes.generation import generate, parse, stream
from services.common.errors import unsupported
from services.common.ids import new_response_id


async def create(exchange: Exchange) -> Response:
    """Generate a response."""
    parsed = await parse(exchange, "responses")
    state = parsed.state
    assert state is not None
    _check_state(state)
    return await _begin(exchange, parsed, state)


def _check_state(state: ResponseState) -> None:
    """Reject what needs stored responses.

    Raises:
        GatewayError: unsupported, naming the field.
    """
    if state.previous_response_id is not None:
        raise unsupported(
            "previous_response_id", "previous_response_id: no response is kept by this gateway"
        )
    if state.background:
        raise unsupported("background", "background: no response is kept by this gateway")
    for reference in state.references:
        raise unsupported(reference.path, f"{reference.path}: no item with this id is kept")


def _begin(exchange: Exchange, parsed: Parsed, state: ResponseState) -> Awaitable[Response]:
    response_id = new_response_id()
    now = exchange.context.source.now
    created = int(now())
    echo = state.echo
    if parsed.stream:
        return stream(exchange, parsed, ResponseStream(response_id, created, echo, now))
    return generate(
        exchange,
        parsed,
        partial(render_response, response_id=response_id, created=created, echo=echo),
        partial(pass_on_response, response_id=response_id, echo=echo),
    )
