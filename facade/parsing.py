"""Parser for bodies of chat completions, messages, responses and embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from facade.dialects import anthropic, openai, responses
from facade.dialects.paths import FieldNames, Origins
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import EmbedRequest, GenerateRequest
from services.common import json_scan
from services.common.errors import GatewayError

Kind = Literal["chat", "messages", "count_tokens", "embeddings", "responses"]
Option = bool | list[str] | dict[str, str]
# Arguments of a dialect's parser beside the body, and the caller's `headers`, if any.
Options = Mapping[str, Any]


@dataclass(slots=True)
class Parsed:
    """A parsed request.

    Attributes:
        request: a `GenerateRequest`, `LazyRequest` or `EmbedRequest`, or a `LargeRequest` if
            another process has parsed the body; `facade.inference_stub` accepts all of them.
        model: the model that the caller named.
        stream: whether the answer is streamed.
        origins: positions of its messages and blocks in the body.
        include_usage: whether a chat's stream ends with a usage chunk.
        calls_functions: whether a chat has functions in place of tools.
        base64: whether the answer has vectors in base64.
        state: for responses, the storage options and the fields that the response echoes.
    """

    request: Any
    model: str
    stream: bool
    origins: Origins
    include_usage: bool = False
    calls_functions: bool = False
    base64: bool = False
    state: responses.ResponseState | None = None


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
) -> Parsed:
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
    include_usage = calls_functions = base64 = False
    state = None
    request: GenerateRequest | EmbedRequest
    # Passed by keyword: unpacked arguments are held until the call returns.
    if kind == "chat":
        chat = openai.parse_chat(held.pop(), lazily=lazily)
        request, lazy, stream, origins = chat.request, chat.lazy, chat.stream, chat.origins
        include_usage, calls_functions = chat.include_usage, chat.calls_functions
    elif kind == "embeddings":
        embeddings = openai.parse_embeddings(held.pop())
        request, lazy, stream, origins = embeddings.request, None, False, embeddings.origins
        base64 = embeddings.base64
    elif kind == "responses":
        response = responses.parse_request(held.pop(), lazily=lazily)
        request, lazy, stream = response.request, response.lazy, response.stream
        origins, state = response.origins, response.state
    else:
        betas, coding = options["betas"], bool(options["coding"])
        if kind == "messages":
            parsed = anthropic.parse_messages(held.pop(), betas=betas, coding=coding, lazily=lazily)
        else:
            parsed = anthropic.parse_count_tokens(held.pop(), betas=betas, coding=coding)
        request, lazy = parsed.request, parsed.lazy
        stream, origins = parsed.stream, parsed.origins
    # Passthrough is possible for whole answers, and for streams of the responses endpoint.
    request.takes_passthrough = (not stream or kind == "responses") and not calls_functions
    if "headers" in options:
        request.headers.update(options["headers"])
    return Parsed(
        lazy or request,
        request.model,
        stream,
        origins,
        include_usage,
        calls_functions,
        base64,
        state,
    )


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
