"""OpenAI's embeddings: bodies and responses of `POST /v1/embeddings`."""

import binascii
from typing import Annotated, Any, Literal

import orjson
from pydantic import ConfigDict, Discriminator, Field, Tag, TypeAdapter

from facade.dialects.extensions import EXTENSION_FIELDS
from facade.dialects.fallback import FallbackFields, set_fallback
from facade.dialects.field_types import UINT32_MAX, Name, Positive
from facade.dialects.openai.types import Text
from facade.dialects.parsed_request import ParsedRequest
from facade.dialects.paths import FieldNames, SourceMap
from facade.dialects.validation import read_quickly, to_opaque
from gateway.conversation.v1.conversation_pb2 import DIALECT_OPENAI
from gateway.inference.v1.inference_pb2 import (
    EmbedRequest,
    EmbedResponse,
    GenerateRequest,
    TokenList,
)
from services.common.errors import invalid
from services.common.text import packed_floats

MAX_INPUTS = 2_048
MAX_TOKENS = 1_000_000  # of one text

EMBEDDING_NAMES = FieldNames(
    {"texts": "input", "token_lists": "input", "end_user": "user", "encoding": "encoding_format"}
)

_ENCODINGS = {
    "float": EmbedRequest.ENCODING_FLOAT,
    "base64": EmbedRequest.ENCODING_BASE64,
}
# Fields of the gateway that would otherwise be passed on to providers as unknown fields.
_REFUSED = EXTENSION_FIELDS - FallbackFields.model_fields.keys()

_Token = Annotated[int, Field(ge=0, le=UINT32_MAX)]
_Tokens = Annotated[list[_Token], Field(fail_fast=True, min_length=1, max_length=MAX_TOKENS)]


def _form_of(value: object) -> str:
    """Return the tag of an input's type, which its first item determines."""
    if not isinstance(value, list):
        return "#text"
    first = value[0] if value else ""
    if isinstance(first, list):
        return "#token_lists"
    return "#tokens" if isinstance(first, int) else "#texts"


class EmbeddingsRequest(FallbackFields):
    """The body of `POST /v1/embeddings`."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, defer_build=True)

    model: Name = Field(description="Name of an embedding model, as listed by `GET /v1/models`.")
    input: Annotated[
        Annotated[Text, Tag("#text")]
        | Annotated[
            list[Text], Field(fail_fast=True, min_length=1, max_length=MAX_INPUTS), Tag("#texts")
        ]
        | Annotated[_Tokens, Tag("#tokens")]
        | Annotated[
            list[_Tokens],
            Field(fail_fast=True, min_length=1, max_length=MAX_INPUTS),
            Tag("#token_lists"),
        ],
        Discriminator(_form_of),
        Field(
            description="A text or a list of texts; with providers of this dialect, a text "
            "may also be a list of the model's tokens."
        ),
    ]
    dimensions: Positive | None = Field(None, description="Number of dimensions of a vector.")
    encoding_format: Literal["float", "base64"] | None = Field(
        None,
        description="`float` (default): numbers. `base64`: base64 of little-endian 32-bit floats.",
    )
    user: str | None = Field(None, description="An id of the end user.")


_REQUEST: TypeAdapter[EmbeddingsRequest] = TypeAdapter(EmbeddingsRequest)


def parse_embeddings(body: bytes) -> ParsedRequest:
    """Parse the body of `POST /v1/embeddings`.

    Raises:
        GatewayError: invalid, naming the invalid field and its valid values.
    """
    wire, _ = read_quickly(_REQUEST, body)
    request = EmbedRequest(
        model=wire.model,
        dialect=DIALECT_OPENAI,
        dimensions=wire.dimensions,
        encoding=_ENCODINGS.get(wire.encoding_format or "", EmbedRequest.ENCODING_UNSPECIFIED),
        end_user=wire.user or "",
    )
    _set_inputs(request, wire.input)
    extra = {name: value for name, value in (wire.model_extra or {}).items() if value is not None}
    for name in sorted(_REFUSED & extra.keys()):
        raise invalid(name, f"{name}: not supported for embeddings")
    if extra:
        request.extra.CopyFrom(to_opaque(DIALECT_OPENAI, extra, ""))
    source_map = SourceMap()
    set_fallback(request, wire, _no_parameters, source_map)
    is_base64 = wire.encoding_format == "base64"
    return ParsedRequest(
        request, wire.model, False, source_map, base64=is_base64, end_user=wire.user or ""
    )


def render_embeddings(response: EmbedResponse, *, base64: bool) -> bytes:
    """Return the JSON of a response without `passthrough`."""
    data = [
        {"object": "embedding", "index": index, "embedding": _written(vector, base64=base64)}
        for index, vector in enumerate(response.vectors)
    ]
    read = response.input_tokens
    usage = {"prompt_tokens": read, "total_tokens": read}
    return orjson.dumps({"object": "list", "data": data, "model": response.model, "usage": usage})


def _written(packed: bytes, *, base64: bool) -> Any:
    if base64:
        return binascii.b2a_base64(packed, newline=False).decode()
    return orjson.Fragment(packed_floats.to_json(packed))


def _set_inputs(request: EmbedRequest, given: str | list[Any]) -> None:
    if isinstance(given, str):
        request.texts.append(given)
    elif isinstance(given[0], str):
        request.texts.extend(given)
    else:
        lists = [given] if isinstance(given[0], int) else given
        request.token_lists.extend(TokenList(tokens=tokens) for tokens in lists)


def _no_parameters(parameters: object, path: str, source_map: SourceMap) -> GenerateRequest:
    """Reject the parameters of a fallback step; see `ReadParameters`."""
    raise invalid(path, f"{path}: not supported for embeddings")
