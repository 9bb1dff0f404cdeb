"""Google's embeddings: bodies and responses of `embedContent` and `batchEmbedContents`."""

from collections.abc import Sequence
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from facade.dialects.fallback import FallbackFields, set_fallback
from facade.dialects.field_types import Positive
from facade.dialects.gemini.spelling import camel_case
from facade.dialects.gemini.types import Content
from facade.dialects.parsed_request import ParsedRequest
from facade.dialects.paths import SourceMap
from facade.dialects.validation import read_quickly, to_opaque
from gateway.conversation.v1.conversation_pb2 import DIALECT_GEMINI
from gateway.inference.v1.inference_pb2 import EmbedRequest, EmbedResponse, GenerateRequest
from services.common.errors import invalid
from services.common.text import packed_floats

MAX_INPUTS = 2_048
_OPEN = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, defer_build=True)
_CONTENT, _SIZE, _TASK = "content", "outputDimensionality", "taskType"
_QUERY = "RETRIEVAL_QUERY"


class EmbedContentFields(BaseModel):
    """A text to embed."""

    model_config = _OPEN

    content: Content = Field(description="The text, as the parts of a content.")
    outputDimensionality: Positive | None = Field(None, description="Dimensions of the vector.")
    taskType: str | None = Field(
        None, description="What the vector is for, such as `RETRIEVAL_QUERY`."
    )

    _spelling = model_validator(mode="before")(camel_case)


class EmbedContentBody(EmbedContentFields, FallbackFields):
    """The body of `embedContent`."""

    model_config = _OPEN


class BatchEmbedContentsBody(FallbackFields):
    """The body of `batchEmbedContents`."""

    model_config = _OPEN

    requests: Annotated[
        list[EmbedContentFields], Field(fail_fast=True, min_length=1, max_length=MAX_INPUTS)
    ] = Field(description="The texts, with the same options.")


_ONE: TypeAdapter[EmbedContentBody] = TypeAdapter(EmbedContentBody)
_BATCH: TypeAdapter[BatchEmbedContentsBody] = TypeAdapter(BatchEmbedContentsBody)


def parse_embed(body: bytes, *, model: str) -> ParsedRequest:
    """Parse the body of `embedContent`; `model` is named by the path.

    Raises:
        GatewayError: invalid, naming the invalid field and its valid values.
    """
    wire, _ = read_quickly(_ONE, body)
    return _parsed([wire], [""], wire, model)


def parse_batch_embed(body: bytes, *, model: str) -> ParsedRequest:
    """Parse the body of `batchEmbedContents`; see `parse_embed`.

    Raises:
        GatewayError: invalid, naming the invalid field and its valid values.
    """
    wire, _ = read_quickly(_BATCH, body)
    prefixes = [f"requests[{index}]." for index in range(len(wire.requests))]
    return _parsed(wire.requests, prefixes, wire, model)


def _parsed(
    entries: Sequence[EmbedContentFields],
    prefixes: Sequence[str],
    body: FallbackFields,
    model: str,
) -> ParsedRequest:
    first = _options(entries[0])
    request = EmbedRequest(
        model=model,
        dialect=DIALECT_GEMINI,
        dimensions=entries[0].outputDimensionality,
        is_query=entries[0].taskType == _QUERY,
    )
    for entry, prefix in zip(entries, prefixes, strict=True):
        options = _options(entry)
        for name in sorted(options.keys() | first.keys()):
            if options.get(name) != first.get(name):
                path = f"{prefix}{name}"
                raise invalid(path, f"{path}: must be the same in all requests of a batch")
        request.texts.append(_text(entry.content, f"{prefix}{_CONTENT}"))
    first.pop(_SIZE, None)
    if first:
        request.extra.CopyFrom(to_opaque(DIALECT_GEMINI, first, ""))
        if entries[0].taskType == _QUERY:
            request.extra.covered_paths.append(_TASK)
    source_map = SourceMap()
    set_fallback(request, body, _no_parameters, source_map)
    return ParsedRequest(request, model, False, source_map)


def _options(entry: EmbedContentFields) -> dict[str, Any]:
    """Return the fields of an entry beside its text; the model repeats that of the path."""
    options = {
        **(entry.model_extra or {}),
        _SIZE: entry.outputDimensionality,
        _TASK: entry.taskType,
    }
    for name in (*FallbackFields.model_fields, "model"):
        options.pop(name, None)
    return {name: value for name, value in options.items() if value is not None}


def _text(content: Content, path: str) -> str:
    texts = []
    for index, part in enumerate(content.get("parts") or ()):
        text = part.get("text")
        if text is None:
            where = f"{path}.parts[{index}]"
            raise invalid(where, f"{where}: must be a text; other media are not embedded")
        texts.append(text)
    joined = "".join(texts)
    if not joined:
        raise invalid(path, f"{path}: must have a text that is not empty")
    return joined


def _no_parameters(parameters: object, path: str, source_map: SourceMap) -> GenerateRequest:
    """Reject the parameters of a fallback step; see `ReadParameters`."""
    raise invalid(path, f"{path}: not supported for embeddings")


def render_embeddings(response: EmbedResponse, *, is_batch: bool) -> bytes:
    """Return the JSON of the vectors, or of the only one."""
    vectors = [
        {"values": orjson.Fragment(packed_floats.to_json(vector))} for vector in response.vectors
    ]
    usage = {"usageMetadata": {"promptTokenCount": response.input_tokens}}
    if is_batch:
        return orjson.dumps({"embeddings": vectors, **usage})
    return orjson.dumps({"embedding": vectors[0], **usage})
