"""Parser for bodies of chat completions, messages, responses and embeddings."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from facade.dialects import anthropic, openai, responses
from facade.dialects.parsed_request import ParsedRequest
from facade.dialects.paths import FieldNames
from gateway.errors.v1 import errors_pb2
from services.common import json_scan
from services.common.errors import GatewayError

Kind = Literal["chat", "messages", "count_tokens", "embeddings", "responses"]
Option = bool | list[str] | dict[str, str]
# Arguments of a dialect's parser beside the body, and the caller's `headers`, if any.
Options = Mapping[str, Any]


@cache
def field_names(kind: Kind, *, are_functions: bool = False) -> FieldNames:
    """Return the names of the canonical request's fields in an endpoint's bodies."""
    match kind:
        case "chat":
            return openai.FUNCTION_NAMES if are_functions else openai.FIELD_NAMES
        case "messages" | "count_tokens":
            return anthropic.FIELD_NAMES
        case "embeddings":
            return openai.EMBEDDING_NAMES
        case "responses":
            return responses.FIELD_NAMES


def parse(
    kind: Kind, held: list[bytes], options: Options, max_values: int, *, lazily: bool = False
) -> ParsedRequest:
    """Parse the body of a request.

    Args:
        kind: the endpoint.
        held: a list with the body, which is removed so that its memory can be freed early.
        options: options of the dialect's parser.
        max_values: maximum number of JSON values.
        lazily: whether the conversation may be translated later.

    Raises:
        GatewayError: too_large, more than `max_values` values; invalid, naming the field.
    """
    if len(held[0]) > max_values:
        check_values(held[0], max_values)
    # Passed by keyword: unpacked arguments are held until the call returns.
    if kind == "chat":
        parsed = openai.parse_chat(held.pop(), lazily=lazily)
    elif kind == "embeddings":
        parsed = openai.parse_embeddings(held.pop())
    elif kind == "responses":
        parsed = responses.parse_request(held.pop(), lazily=lazily)
    else:
        betas, coding = options["betas"], bool(options["coding"])
        if kind == "messages":
            parsed = anthropic.parse_messages(held.pop(), betas=betas, coding=coding, lazily=lazily)
        else:
            parsed = anthropic.parse_count_tokens(held.pop(), betas=betas, coding=coding)
    # Passthrough is possible for whole answers, and for streams of the responses endpoint.
    if not (parsed.stream and kind != "responses") and not parsed.calls_functions:
        parsed.request.takes_passthrough = True
    if "headers" in options:
        parsed.request.headers.update(options["headers"])
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
