"""Parser for bodies of chat completions, messages, responses and embeddings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from facade.dialects import anthropic, openai, responses
from facade.dialects.parsed_request import ParsedRequest
from facade.dialects.paths import FieldNames
from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Dialect
from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.messages.lazy_request import LazyRequest
from services.common.text import json_scan

Option = bool | list[str] | dict[str, str]
# Arguments of a format's parser beside the body, and the caller's `headers`, if any.
Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BodyFormat:
    """The format of the bodies of an endpoint.

    Attributes:
        name: its name, by which a parser process finds it.
        dialect: the dialect, whose headers are forwarded.
        parse: parses the body in a list, from which it is removed so that its memory can be freed
            early, with the parser's options; the conversation may be translated later if the last
            argument is true.
        field_names: names of the canonical request's fields in the bodies.
        function_names: the same for requests with functions in place of tools.
        passes_streams: whether streams may be passed through, as whole answers may.
    """

    name: str
    dialect: Dialect.ValueType
    parse: Callable[[list[bytes], Options, bool], ParsedRequest]
    field_names: FieldNames
    function_names: FieldNames | None = None
    passes_streams: bool = False


# The body is popped within the call of the parser, so that no frame keeps it.
def _parse_chat(held: list[bytes], _: Options, lazily: bool) -> ParsedRequest:
    return openai.parse_chat(held.pop(), lazily=lazily)


def _parse_embeddings(held: list[bytes], _: Options, lazily: bool) -> ParsedRequest:
    return openai.parse_embeddings(held.pop())


def _parse_messages(held: list[bytes], options: Options, lazily: bool) -> ParsedRequest:
    betas, coding = options["betas"], options["coding"]
    return anthropic.parse_messages(held.pop(), betas=betas, coding=coding, lazily=lazily)


def _parse_count_tokens(held: list[bytes], options: Options, lazily: bool) -> ParsedRequest:
    betas, coding = options["betas"], options["coding"]
    return anthropic.parse_count_tokens(held.pop(), betas=betas, coding=coding)


def _parse_response(held: list[bytes], _: Options, lazily: bool) -> ParsedRequest:
    return responses.parse_request(held.pop(), lazily=lazily)


CHAT: Final = BodyFormat(
    "chat",
    conversation_pb2.DIALECT_OPENAI,
    _parse_chat,
    openai.FIELD_NAMES,
    function_names=openai.FUNCTION_NAMES,
)
EMBEDDINGS: Final = BodyFormat(
    "embeddings", conversation_pb2.DIALECT_OPENAI, _parse_embeddings, openai.EMBEDDING_NAMES
)
MESSAGES: Final = BodyFormat(
    "messages", conversation_pb2.DIALECT_ANTHROPIC, _parse_messages, anthropic.FIELD_NAMES
)
COUNT_TOKENS: Final = BodyFormat(
    "count_tokens", conversation_pb2.DIALECT_ANTHROPIC, _parse_count_tokens, anthropic.FIELD_NAMES
)
RESPONSES: Final = BodyFormat(
    "responses",
    conversation_pb2.DIALECT_RESPONSES,
    _parse_response,
    responses.FIELD_NAMES,
    passes_streams=True,
)
FORMATS: Final[Mapping[str, BodyFormat]] = {
    each.name: each for each in (CHAT, EMBEDDINGS, MESSAGES, COUNT_TOKENS, RESPONSES)
}


def parse(
    body_format: BodyFormat,
    held: list[bytes],
    options: Options,
    max_values: int,
    *,
    lazily: bool = False,
) -> ParsedRequest:
    """Parse the body of a request.

    Args:
        body_format: the format of the endpoint's bodies.
        held: a list with the body, which is removed so that its memory can be freed early.
        options: options of the format's parser.
        max_values: maximum number of JSON values.
        lazily: whether the conversation may be translated later.

    Raises:
        GatewayError: too_large, more than `max_values` values; invalid, naming the field.
    """
    if len(held[0]) > max_values:
        check_values(held[0], max_values)
    parsed = body_format.parse(held, options, lazily)
    request = parsed.request
    if isinstance(request, LazyRequest):
        request = request.request
    if (not parsed.stream or body_format.passes_streams) and not parsed.calls_functions:
        request.takes_passthrough = True
    if "headers" in options:
        request.headers.update(options["headers"])
    return parsed


def check_values(body: bytes, limit: int) -> None:
    """Check the number of values in a JSON body before it is parsed.

    Raises:
        GatewayError: too_large.
    """
    if json_scan.exceeds(body, limit):
        raise GatewayError(
            errors_pb2.REASON_TOO_LARGE,
            f"the body has more than {limit:,} JSON values",
            limit="limits.max_body_values",
        )
