"""Bodies of chat completions and messages into requests: check, read, translate."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from facade.dialects import anthropic, openai
from gateway.errors.v1 import errors_pb2
from services.common import json_scan
from services.common.errors import GatewayError

Kind = Literal["chat", "messages", "count_tokens"]
Option = bool | list[str] | dict[str, str]
# Arguments of a dialect's parser beside the body, and the caller's `headers` where there are any.
Options = Mapping[str, Any]


@dataclass(slots=True)
class Parsed:
    """What a caller asks for.

    Attributes:
        request: what to generate, a `GenerateRequest`, or the bytes of one where another
            process has read the body; `facade.serialized` sends either.
        model: the model that the caller named.
        stream: whether the answer is streamed.
        include_usage: whether a chat's stream ends with a chunk that tells the usage.
    """

    request: Any
    model: str
    stream: bool
    include_usage: bool = False


def parse(kind: Kind, held: list[bytes], options: Options, max_values: int) -> Parsed:
    """Read the body of a request.

    Args:
        kind: of which endpoint.
        held: the body alone, which is taken out, so that its memory can go before the end.
        options: of the dialect.
        max_values: how many JSON values it may have.

    Raises:
        GatewayError: too_large, more than `max_values` values; invalid, naming the field.
    """
    check_values(held[0], max_values)
    size = len(held[0])
    parsed = _translate(kind, held, options)
    parsed.request.body_bytes = size
    # A whole answer in the caller's own dialect goes as it came.
    parsed.request.takes_verbatim = not parsed.stream
    if "headers" in options:
        parsed.request.headers.update(options["headers"])
    return parsed


def _translate(kind: Kind, held: list[bytes], options: Options) -> Parsed:
    # Called by name: arguments that are unpacked are held until the call returns.
    if kind == "chat":
        chat = openai.parse_chat(held.pop())
        return Parsed(chat.request, chat.request.model, chat.stream, chat.include_usage)
    betas, coding = options["betas"], bool(options["coding"])
    if kind == "messages":
        parsed = anthropic.parse_messages(held.pop(), betas=betas, coding=coding)
    else:
        parsed = anthropic.parse_count_tokens(held.pop(), betas=betas, coding=coding)
    return Parsed(parsed.request, parsed.request.model, parsed.stream)


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
