"""Requests that are no conversations, in OpenAI's form, and their answers. Pure but for reading.

A request is sent as its caller wrote it, but for the name of the model. The answer is passed on in
the same way: JSON and text whole, and any other type in the pieces that arrive, such as audio and
event streams. The usage is read from the answer's `usage`, or that of an event.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import orjson
from msgspec import DecodeError, Raw
from msgspec.json import Decoder, encode

from gateway.conversation.v1.conversation_pb2 import DIALECT_OPENAI, Opaque, Usage
from gateway.inference.v1.inference_pb2 import Event, ForwardRequest, Start
from services.common.errors import invalid
from services.common.http import ResponseBody
from services.inference.offload import offload
from services.inference.pricing.counts import CHARACTERS, IMAGES
from services.inference.pricing.pieces import IMAGES as IMAGE_OPERATIONS
from services.inference.pricing.pieces import pieces_of
from services.inference.pricing.price import Unit
from services.inference.providers.base import ForwardCall
from services.inference.providers.bounds import tokens
from services.inference.providers.failures import broken_answer
from services.inference.providers.openai.forms import FormField, form_of
from services.inference.providers.request_fields import ServerRules, stored_object_error
from services.inference.providers.sse import SseSplitter
from services.inference.providers.upstream import Upstream
from services.inference.request.form_fields import fields_of_form
from services.inference.request.stored_references import find_reference
from services.inference.stream.filters import Batch

PATHS: Final[Mapping[int, str]] = MappingProxyType(
    {
        ForwardRequest.OPERATION_MODERATION: "/moderations",
        ForwardRequest.OPERATION_IMAGE_GENERATION: "/images/generations",
        ForwardRequest.OPERATION_IMAGE_EDIT: "/images/edits",
        ForwardRequest.OPERATION_IMAGE_VARIATION: "/images/variations",
        ForwardRequest.OPERATION_SPEECH: "/audio/speech",
        ForwardRequest.OPERATION_TRANSCRIPTION: "/audio/transcriptions",
        ForwardRequest.OPERATION_TRANSLATION: "/audio/translations",
        ForwardRequest.OPERATION_RERANK: "/rerank",
        ForwardRequest.OPERATION_COMPLETION: "/completions",
    }
)
_FIELDS: Final = Decoder(dict[str, Raw])
# The beginning of an event with a complete image.
_IMAGE_DONE: Final = re.compile(rb'"type" ?: ?"image_(?:generation|edit)\.completed"')
# Fields of the caller's own content, in any form.
_CONTENT: Final = frozenset({"prompt", "documents", "query"})
_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"


def body_of(call: ForwardCall, boundary: str, server: ServerRules) -> tuple[bytes, str]:
    """Return the body of a request and its content type.

    Args:
        call: the call.
        boundary: a string that no part of a form contains.
        server: what the provider's server may be sent.

    Raises:
        GatewayError: invalid, for JSON that is no object, or a reference to something stored at
            the provider, unless callers may do so.
    """
    sent, model = call.sent, call.target.upstream
    if sent.json:
        try:
            # Numbers stay as they were written: no double holds some of them.
            fields = _FIELDS.decode(sent.json)
        except DecodeError:
            raise invalid("json", "json: must be a JSON object") from None
        if not server.pass_stateful:
            _check(call, {name: _parsed(json) for name, json in fields.items()})
        return encode({**fields, "model": model}), _JSON
    if not server.pass_stateful:
        for field in fields_of_form(sent.parts):
            _check(call, field)
    form_fields = [
        FormField(
            part.name,
            part.content,
            part.filename if part.HasField("filename") else None,
            part.content_type,
        )
        for part in sent.parts
        if part.name != "model"
    ]
    return form_of(model, form_fields, boundary), f"multipart/form-data; boundary={boundary}"


def _check(call: ForwardCall, fields: Mapping[str, Any]) -> None:
    """Check that a request refers to nothing stored at the provider.

    Raises:
        GatewayError: invalid, naming the field.
    """
    place = find_reference({name: fields[name] for name in fields.keys() - _CONTENT})
    if place is not None:
        raise stored_object_error(call.target.provider, place)


def _parsed(json: Raw) -> Any:
    """Return a member of an object; members that are repeated in it have the last value.

    Raises:
        GatewayError: invalid.
    """
    try:
        return orjson.loads(memoryview(json))
    except orjson.JSONDecodeError:
        raise invalid("json", "json: must be a JSON object") from None


async def read_answer(
    body: ResponseBody, content_type: str, call: ForwardCall, upstream: Upstream
) -> AsyncIterator[Batch]:
    """Yield the events of an answer.

    Raises:
        UpstreamError: the answer reports an error, or is larger than `limits.max_answer_bytes`.
        HttpError: as `ResponseBody.read`.
        SseTooLongError: as `SseSplitter.feed`.
        TimeoutError: nothing arrived for `limits.stream_idle_s`.
    """
    kind = content_type.partition(";")[0].strip().lower()
    begun = [Event(start=Start(model=call.target.upstream, content_type=content_type))]
    if kind == _JSON or (kind.startswith("text/") and kind != _EVENTS):
        # The step's own timeout applies, as nothing has been passed on.
        answer = await body.whole()
        usage = await offload(_usage_of, answer, call, upstream) if kind == _JSON else None
        yield [*begun, Event(data=answer), *([] if usage is None else [Event(usage=usage)])]
        return
    events = _EventUsage(call, upstream) if kind == _EVENTS else None
    if characters := pieces_of(call.sent).get(Unit.CHARACTER, 0):
        # Also billed if the answer breaks off.
        begun.append(Event(usage=_with_pieces(None, CHARACTERS, characters)))
    size = 0
    while True:
        async with asyncio.timeout(upstream.limits.stream_idle_s if size else None):
            piece = await body.read()
        if not piece:
            break
        size += len(piece)
        if size > upstream.limits.max_answer_bytes:
            raise broken_answer(upstream.name, "returned more than limits.max_answer_bytes")
        if events is not None:
            events.feed(piece)
        yield [*begun, Event(data=piece)]
        begun = []
    if events is not None:
        usage = _with_pieces(events.usage, IMAGES, events.images)
        usage = _with_pieces(usage, CHARACTERS, characters)
        if usage is not None:
            yield [Event(usage=usage)]


class _EventUsage:
    """Reads the usage of an event stream as it passes.

    Attributes:
        usage: the last usage; None before one.
        images: the number of complete images.
    """

    def __init__(self, call: ForwardCall, upstream: Upstream) -> None:
        self.usage: Usage | None = None
        self.images = 0
        self._call = call
        self._upstream = upstream
        self._splitter = SseSplitter(upstream.limits.max_answer_bytes)

    def feed(self, piece: bytes) -> None:
        """Read the events that a piece completes.

        Raises:
            UpstreamError: an event reports an error.
        """
        for data in _data_of(self._splitter.feed(piece)):
            # An event of an image is megabytes: only those of interest are parsed.
            self.images += _IMAGE_DONE.search(data) is not None
            if b'"usage"' in data or b'"error"' in data:
                self.usage = _usage_of(data, self._call, self._upstream) or self.usage


def _data_of(text: bytes) -> list[bytes]:
    """Return the data of complete events, of which each has one line."""
    return [line[5:].strip() for line in text.splitlines() if line.startswith(b"data:")]


def _usage_of(answer: bytes, call: ForwardCall, upstream: Upstream) -> Usage | None:
    """Return the usage that a JSON object reports; None without one, and for any other JSON.

    Raises:
        UpstreamError: the answer reports an error, or is not JSON.
    """
    if not answer.lstrip().startswith(b"{"):
        return None
    fields = upstream.json_object(answer)
    makes_images = call.sent.operation in IMAGE_OPERATIONS
    usage = usage_in(fields, makes_images=makes_images)
    made = fields.get("data")
    if makes_images and isinstance(made, list):
        return _with_pieces(usage, IMAGES, len(made))
    return usage


def _with_pieces(usage: Usage | None, name: str, count: int) -> Usage | None:
    """Return a usage with a count in its `extra`; unchanged if it is 0."""
    if not count:
        return usage
    fields = {} if usage is None else orjson.loads(usage.extra.json)
    counted = Usage() if usage is None else usage
    counted.extra.CopyFrom(
        Opaque(dialect=DIALECT_OPENAI, json=orjson.dumps({**fields, name: count}))
    )
    return counted


def usage_in(answer: Mapping[str, Any], *, makes_images: bool = False) -> Usage | None:
    """Return the usage in an answer; None without one.

    Images and audio have `usage` with tokens, or with the `seconds` of a recording. Rerankers have
    tokens there, or in `meta.tokens` or `meta.billed_units`.

    Args:
        answer: the answer, or an event.
        makes_images: whether the output is images, if the usage does not say what it is.
    """
    meta = answer.get("meta")
    usages = [answer.get("usage")]
    if isinstance(meta, dict):
        usages += (meta.get("tokens"), meta.get("billed_units"))
    for usage in usages:
        if not isinstance(usage, dict):
            continue
        read = _count(usage, "input_tokens", "prompt_tokens", "total_tokens")
        written = _count(usage, "output_tokens", "completion_tokens")
        if read or written or usage.get("seconds"):
            details = _details(usage, {"image_tokens": written} if makes_images else {})
            extra = Opaque(dialect=DIALECT_OPENAI, json=orjson.dumps({**usage, **details}))
            return Usage(input_tokens=read, output_tokens=written, extra=extra)
    return None


def _details(usage: Mapping[str, Any], output: Mapping[str, int]) -> Mapping[str, Any]:
    """Return the details of a usage under their names in chats.

    Args:
        usage: the usage of an image (`input_tokens_details`) or of audio (`input_token_details`).
        output: the details of the output, if it has none.
    """
    read = usage.get("input_tokens_details") or usage.get("input_token_details") or {}
    written = usage.get("output_tokens_details") or usage.get("output_token_details") or output
    return {"prompt_tokens_details": read, "completion_tokens_details": written}


def _count(usage: Mapping[str, Any], *names: str) -> int:
    """Return the first count with one of these names; 0 without one."""
    for name in names:
        try:
            return tokens(usage[name])
        except (KeyError, TypeError, ValueError):
            continue
    return 0
