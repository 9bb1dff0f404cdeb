"""Common parts of all requests to models: parse, call the service, respond.

A conversation may be many megabytes and an answer may take minutes, so the body is freed after
parsing, and the request after sending.
"""

from collections.abc import Awaitable, Callable
from functools import partial

from facade.bodies import ReceivedBody
from facade.dialects.foreign_parts import foreign_parts
from facade.dialects.parsed_request import ParsedRequest
from facade.dialects.paths import CallerPaths
from facade.http.exchange import AnswerSummary, Exchange
from facade.http.responses import JsonResponse, Response
from facade.http_errors import unsupported_media_type
from facade.labels import label_metadata
from facade.parsing import BodyFormat, Option
from facade.route_headers import add_dropped, answer_headers
from facade.sse import Encoder, EndObserver, relay
from gateway.inference.v1.inference_pb2 import GenerateResponse
from services.common.grpc.authentication import call_metadata
from services.common.grpc.channels import Metadata
from services.common.grpc.dialect_headers import of_request
from services.common.grpc.hops import HOPS_KEY, parse_hops
from services.common.grpc.inprocess.response_stream import deliver
from services.common.messages.plain_answer import PlainAnswer
from services.common.process.byte_budget import request_charge

_JSON = "application/json"
_MAX_CACHE_CONTROL = 256  # characters


def check_json(exchange: Exchange) -> None:
    """Check that the content type of a request is JSON.

    Raises:
        GatewayError: 415 for any other.
    """
    if exchange.content_type != _JSON:
        raise unsupported_media_type(exchange.content_type)


async def parse(exchange: Exchange, body_format: BodyFormat, **options: Option) -> ParsedRequest:
    """Read and parse a request: its body, and the headers that belong to the caller's dialect.

    Raises:
        GatewayError: as `ReceivedBody` and `ParserPool.parse`; 415 for another content type.
    """
    # Parsing the value takes longer than the rest.
    if exchange.headers.get("content-type") != _JSON:
        check_json(exchange)
    headers = exchange.checked.dialect_headers
    if headers is None:
        headers = of_request(body_format.dialect, exchange.headers)
        exchange.checked.dialect_headers = headers
    if headers:
        options["headers"] = headers
    context = exchange.context
    max_body_bytes = context.settings.limits.max_body_bytes
    body = exchange.take_body(max_body_bytes)
    if body is not None:
        held = [body]
        del body  # so that a large body can be freed after parsing
        parsed = await context.parser.parse(body_format, held, **options)
    else:
        context.parser.expect(exchange.content_length)
        received = ReceivedBody(exchange, max_body_bytes)
        async with received as held:
            parsed = await context.parser.parse(body_format, held, **options)
            received.keep()
    if exchange.body_charge is not None:
        request_charge.set(exchange.body_charge)
    if context.labels is not None:
        exchange.labels = label_metadata(exchange.headers, parsed, context.labels)
    exchange.model, exchange.dialect = parsed.model, body_format.dialect
    names = body_format.field_names
    if parsed.calls_functions and body_format.function_names is not None:
        names = body_format.function_names
    exchange.caller_paths = CallerPaths(names, parsed.source_map)
    return parsed


def rpc_metadata(exchange: Exchange) -> Metadata:
    """Return the metadata of every RPC for a request."""
    carried = call_metadata(exchange.api_key, exchange.request_id)
    if exchange.context.has_response_cache:
        carried = (*carried, *_cache_control(exchange))
    passed = exchange.headers.get(HOPS_KEY)
    if passed is not None:
        carried = (*carried, (HOPS_KEY, str(parse_hops(passed))))
    if exchange.labels:
        carried = (*carried, *exchange.labels)
    if exchange.trace is not None:
        carried = (*carried, *exchange.trace.pairs())
    return carried


def _cache_control(exchange: Exchange) -> Metadata:
    """Return the caller's `cache-control` header as metadata, for the response cache."""
    directives = exchange.headers.get("cache-control", "")
    if not 0 < len(directives) <= _MAX_CACHE_CONTROL or not (
        directives.isascii() and directives.isprintable()
    ):
        return ()
    return (("cache-control", directives),)


def stream(
    exchange: Exchange, parsed: ParsedRequest, encoder: Encoder, observer: EndObserver | None = None
) -> Awaitable[Response]:
    """Start a streamed call; return the coroutine that writes the response; see `relay`."""
    inference = exchange.context.inference
    call = inference.StreamGenerate(parsed.request, metadata=rpc_metadata(exchange))
    return relay(exchange, partial(deliver, call), encoder, observer)


async def generate(
    exchange: Exchange,
    parsed: ParsedRequest,
    render: Callable[[GenerateResponse], bytes],
    passthrough: Callable[[bytes], bytes] = bytes,
) -> JsonResponse:
    """Make a unary call; return the response.

    Args:
        exchange: the request.
        parsed: its body, which is freed once it has been sent.
        render: renders the answer.
        passthrough: returns the body to send for the body of a passthrough answer.
    """
    call = exchange.context.inference.Generate(parsed.request, metadata=rpc_metadata(exchange))
    del parsed
    response = await call
    route, passed = response.route, response.passthrough
    exchange.answer_summary = AnswerSummary.of(route, response.usage)
    headers = answer_headers(exchange, route)
    if passed:
        return JsonResponse(passthrough(passed), headers)
    if not isinstance(response, PlainAnswer):
        dropped = dict.fromkeys(foreign_parts(response.choices, exchange.dialect))
        if dropped:
            add_dropped(headers, dropped)
    return JsonResponse(render(response), headers)
