"""OpenAI's requests that are no conversations: bodies of moderations, images, audio and rerankers.

A body is forwarded as it is, whatever its fields are; of JSON and forms alike, only the model, the
end user and the fields of fallback are read.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Final

import orjson
from msgspec.json import encode
from pydantic import ConfigDict, Field, TypeAdapter

from facade.dialects.extensions import EXTENSION_FIELDS
from facade.dialects.fallback import FALLBACK_FIELDS, FallbackFields, set_fallback
from facade.dialects.field_types import Name
from facade.dialects.parsed_request import ParsedRequest
from facade.dialects.paths import FieldNames, SourceMap
from facade.dialects.validation import check, read_quickly
from facade.dialects.verbatim import fields_of
from gateway.inference.v1.inference_pb2 import FormPart, ForwardRequest, GenerateRequest
from services.common.errors import invalid

FORWARD_NAMES: Final = FieldNames({})
MODERATION_MODEL: Final = "omni-moderation-latest"
# Fields of the gateway that would otherwise be sent to providers as unknown fields.
_REFUSED: Final = EXTENSION_FIELDS - FALLBACK_FIELDS


class ForwardedBody(FallbackFields):
    """The fields that all such requests have."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, defer_build=True)

    model: Name = Field(description="Name of a model, as listed by `GET /v1/models`.")
    user: str | None = Field(None, description="An id of the end user.")


class ModerationBody(ForwardedBody):
    """The body of `POST /v1/moderations`."""

    model: Name = Field(MODERATION_MODEL, description="Name of a moderation model.")
    input: Any = Field(description="A text, texts, or parts with texts and images.")


class ImageBody(ForwardedBody):
    """The body of `POST /v1/images/generations`; further fields are forwarded."""

    prompt: str = Field(description="What the image shows.")
    stream: bool | None = Field(None, description="Whether to send images as they are made.")


class ImageEditBody(ImageBody):
    """The body of `POST /v1/images/edits` as JSON or a form; further fields are forwarded."""


class SpeechBody(ForwardedBody):
    """The body of `POST /v1/audio/speech`; further fields are forwarded."""

    input: str = Field(description="The text to speak.")
    voice: Any = Field(None, description="The name of a voice, or an object with its `id`.")


class RerankBody(ForwardedBody):
    """The body of `POST /v1/rerank`; further fields, such as `top_n`, are forwarded."""

    query: Any = Field(description="What the documents are compared with.")
    documents: Annotated[list[Any], Field(min_length=1)] = Field(
        description="The documents, mostly texts."
    )


class CompletionBody(ForwardedBody):
    """The body of `POST /v1/completions`; further fields are forwarded."""

    prompt: Any = Field(
        description="A text or a list of texts; token lists only for models with this endpoint."
    )
    stream: bool | None = Field(None, description="Whether to stream the texts.")


class FormBody(ForwardedBody):
    """A form with one or more files; further fields are forwarded."""


_ADAPTERS: Final[Mapping[int, TypeAdapter[Any]]] = MappingProxyType(
    {
        ForwardRequest.OPERATION_MODERATION: TypeAdapter(ModerationBody),
        ForwardRequest.OPERATION_IMAGE_GENERATION: TypeAdapter(ImageBody),
        ForwardRequest.OPERATION_IMAGE_EDIT: TypeAdapter(ImageEditBody),
        ForwardRequest.OPERATION_SPEECH: TypeAdapter(SpeechBody),
        ForwardRequest.OPERATION_RERANK: TypeAdapter(RerankBody),
        ForwardRequest.OPERATION_COMPLETION: TypeAdapter(CompletionBody),
    }
)
_FORM: Final[TypeAdapter[FormBody]] = TypeAdapter(FormBody)


def parse_forwarded(body: bytes, operation: str) -> ParsedRequest:
    """Parse a JSON body; `operation` is a name of `ForwardRequest.Operation`.

    Raises:
        GatewayError: invalid, naming the invalid field and its valid values.
    """
    number = ForwardRequest.Operation.Value(operation)
    wire, _ = read_quickly(_ADAPTERS[number], body)
    request = ForwardRequest(operation=number, model=wire.model)
    # As written: a number that no double holds stays what it is.
    fields = fields_of(body)
    if fields is None:
        raise invalid("", "the body must be a JSON object")
    sent = {name: value for name, value in fields.items() if name not in FALLBACK_FIELDS}
    request.json = encode(sent)
    return _parsed(request, wire, sent.keys())


def parse_form(parts: Sequence[FormPart], operation: str) -> ParsedRequest:
    """Parse the fields of a form; `operation` is a name of `ForwardRequest.Operation`.

    `fallback_config`, if any, is JSON.

    Raises:
        GatewayError: invalid, naming the invalid field and its valid values.
    """
    own: dict[str, Any] = {}
    request = ForwardRequest(operation=ForwardRequest.Operation.Value(operation))
    for part in parts:
        if part.name in FormBody.model_fields and not part.HasField("filename"):
            own[part.name] = _text(part)
        if part.name != "model" and part.name not in FALLBACK_FIELDS:
            request.parts.append(part)
    if "fallback_config" in own:
        try:
            own["fallback_config"] = orjson.loads(own["fallback_config"])
        except orjson.JSONDecodeError:
            raise invalid("fallback_config", "fallback_config: must be JSON") from None
    wire = check(_FORM, own, "")
    if not request.parts:
        raise invalid("file", "file: is required; send it as a field of the form")
    request.model = wire.model
    return _parsed(request, wire, [part.name for part in request.parts])


def _text(part: FormPart) -> str:
    try:
        return part.content.decode()
    except UnicodeDecodeError:
        raise invalid(part.name, f"{part.name}: must be UTF-8") from None


def _parsed(request: ForwardRequest, wire: ForwardedBody, names: Any) -> ParsedRequest:
    for name in sorted(_REFUSED.intersection(names)):
        raise invalid(name, f"{name}: not supported for this endpoint")
    source_map = SourceMap()
    set_fallback(request, wire, _no_parameters, source_map)
    return ParsedRequest(request, wire.model, True, source_map, end_user=wire.user or "")


def _no_parameters(parameters: object, path: str, source_map: SourceMap) -> GenerateRequest:
    """Reject the parameters of a fallback step; see `ReadParameters`."""
    raise invalid(path, f"{path}: not supported for this endpoint")
