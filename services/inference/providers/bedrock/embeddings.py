"""Embeddings of Amazon's Titan and of Cohere's models, by InvokeModel. Pure.

Sources: the user guide's pages "Amazon Titan Text Embeddings" and "Cohere Embed".
"""

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from services.common.errors import GatewayError, unsupported
from services.common.text import packed_floats
from services.inference.providers.base import EmbeddingCall
from services.inference.providers.bedrock import sanitizing
from services.inference.providers.bounds import tokens
from services.inference.providers.opaque_json import Json
from services.inference.providers.upstream import Upstream
from services.inference.providers.vectors import (
    MAX_LENGTH,
    VectorRequest,
    VectorTexts,
    check_lengths,
    no_answer,
    packed,
)

_TITAN = "titan-embed"
# The first version, which has vectors of one size.
_TITAN_1 = re.compile(r"titan-embed-(?:text-v1|g1-text)")
_COHERE = "cohere.embed"
_COHERE_4 = "cohere.embed-v4"
# Maximum texts of a request of Cohere's.
_MAX_TEXTS = 96
# The header of an answer with the number of input tokens.
_TOKENS = "x-amzn-bedrock-input-token-count"
# Maximum JSON values of Titan's answer, besides its numbers.
_VALUES = 64


def batches(call: EmbeddingCall, provider: str) -> Iterator[VectorRequest]:
    """Yield the requests of a call.

    Args:
        call: the call.
        provider: the provider's name in the settings, for errors.

    Raises:
        GatewayError: unsupported, for a model of neither family, or a size of vectors that it does
            not have.
    """
    name = call.target.upstream
    path = f"{sanitizing.model_path(name)}/invoke"
    if _TITAN in name:
        body = _titan_body(call)
        for text in call.inputs.texts:
            yield VectorRequest(path, orjson.dumps({"inputText": text, **body}), 1)
    elif _COHERE in name:
        cohere = _cohere_body(call)
        texts: Sequence[str] = call.inputs.texts
        for begin in range(0, len(texts), _MAX_TEXTS):
            some = list(texts[begin : begin + _MAX_TEXTS])
            yield VectorRequest(path, orjson.dumps({"texts": some, **cohere}), len(some))
    else:
        raise unsupported(
            "model",
            f"model: embeddings of the provider {provider} are those of Titan and Cohere",
        )


def _titan_body(call: EmbeddingCall) -> Json:
    """Return the fields beside the text."""
    inputs = call.inputs
    if not inputs.HasField("dimensions"):
        return {}
    if _TITAN_1.search(call.target.upstream):
        raise _one_size()
    return {"dimensions": inputs.dimensions}


def _one_size() -> GatewayError:
    return unsupported("dimensions", "dimensions: this model has vectors of one size")


def _cohere_body(call: EmbeddingCall) -> Json:
    """Return the fields beside the texts; texts that are too long are rejected, not cut."""
    inputs = call.inputs
    kind = "search_query" if inputs.is_query else "search_document"
    body: Json = {"input_type": kind, "truncate": "NONE", "embedding_types": ["float"]}
    if inputs.HasField("dimensions"):
        if _COHERE_4 not in call.target.upstream:
            raise _one_size()
        body["output_dimension"] = inputs.dimensions
    return body


def read_batch(
    answer: bytes, count: int, headers: Mapping[str, str] | None, upstream: Upstream
) -> tuple[list[bytes], int | None]:
    """Return the packed vectors of `count` texts, and the texts' tokens if reported.

    Raises:
        UpstreamError: the answer does not have that many vectors of the same length.
    """
    vectors = _cohere_vectors(answer) if b'"embeddings"' in answer else None
    if vectors is None:
        texts = VectorTexts(answer, "embedding")
        parsed = upstream.json_object_of(texts.outline, _VALUES)
        vector = texts.vector_of(parsed.get("embedding"))
        vectors = [packed(one, upstream.name) for one in check_lengths([vector], upstream.name)]
    if len(vectors) != count:
        raise no_answer(count, upstream.name)
    try:
        return vectors, tokens(int((headers or {})[_TOKENS]))
    except (LookupError, ValueError):
        return vectors, None


def _cohere_vectors(answer: bytes) -> list[bytes] | None:
    """Return the packed vectors of Cohere's answer, none if it is malformed; None for any other."""
    vectors: list[Any]
    try:
        match orjson.loads(answer):
            case {"embeddings": {"float": [*vectors]}} | {"embeddings": [*vectors]}:
                sizes = {len(one) for one in vectors}
                if len(vectors) > _MAX_TEXTS or len(sizes) != 1 or not 0 < max(sizes) <= MAX_LENGTH:
                    return []
                return [packed_floats.pack(one) for one in vectors]
    except (orjson.JSONDecodeError, TypeError, OverflowError, struct.error):
        return []
    return None
