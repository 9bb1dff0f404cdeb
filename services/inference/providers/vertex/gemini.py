"""Google's models on Vertex AI. Pure.

Sources: google-genai's requests to Vertex AI, and Google's pages "Text embeddings API" and
"CountTokens".
"""

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from services.inference.providers.base import EmbeddingCall
from services.inference.providers.bounds import tokens
from services.inference.providers.gemini.embeddings import MAX_BATCH
from services.inference.providers.opaque_json import Json
from services.inference.providers.upstream import Upstream
from services.inference.providers.vectors import (
    VectorRequest,
    VectorTexts,
    check_lengths,
    no_answer,
    packed,
)
from services.inference.providers.vertex.paths import model_path

# Of `predict`: maximum texts, and tokens, of a request. A token is a character at least.
_MAX_TEXTS = 250
_MAX_CHARACTERS = 20_000
# Maximum JSON values of an answer per vector, besides its numbers.
_VALUES_A_VECTOR = 64
_GEMINI = "gemini"
# Fields of Gemini's API and their names beside a text.
_OF_TEXT = (("taskType", "task_type"), ("title", "title"))


class VertexApi:
    """Google's models on Vertex AI; see `gemini.apis.Api`."""

    def model_path(self, upstream: str) -> str:
        """Return the path of a model."""
        return model_path(upstream)

    def count_body(self, upstream: str, read: Json) -> Json:
        """Return the body of `countTokens`."""
        return read

    def batches(self, call: EmbeddingCall, own: Json) -> Iterator[VectorRequest]:
        """Yield the requests of a call for vectors.

        Texts that are too long are rejected, not cut.
        """
        path = f"/{model_path(call.target.upstream)}"
        inputs = call.inputs
        size = {"outputDimensionality": inputs.dimensions} if inputs.HasField("dimensions") else {}
        config = {"autoTruncate": False, **own, **size}
        texts: Sequence[str] = inputs.texts
        if _GEMINI not in path:
            # `predict` has fields of a text beside it.
            of_text = {name: config.pop(field) for field, name in _OF_TEXT if field in config}
            for some in _parts(texts):
                instances = [{"content": text, **of_text} for text in some]
                body = {"instances": instances, "parameters": config}
                yield VectorRequest(f"{path}:predict", orjson.dumps(body), len(some))
            return
        for begin in range(0, len(texts), MAX_BATCH):
            some = texts[begin : begin + MAX_BATCH]
            requests = [
                {
                    "content": {"role": "user", "parts": [{"text": text}]},
                    "embedContentConfig": config,
                }
                for text in some
            ]
            if len(requests) == 1:
                yield VectorRequest(f"{path}:embedContent", orjson.dumps(requests[0]), 1)
            else:
                body = {"requests": requests}
                yield VectorRequest(f"{path}:batchEmbedContents", orjson.dumps(body), len(some))

    def read_batch(
        self, answer: bytes, count: int, upstream: Upstream
    ) -> tuple[list[bytes], int | None]:
        """Return the packed vectors of an answer, and its tokens if reported."""
        texts = VectorTexts(answer, "values")
        parsed = upstream.json_object_of(texts.outline, (count + 1) * _VALUES_A_VECTOR)
        items = _items(parsed)
        if len(items) != count:
            raise no_answer(count, upstream.name)
        read = [texts.vector_of(one.get("values")) for one in items]
        vectors = [packed(one, upstream.name) for one in check_lengths(read, upstream.name)]
        return vectors, _tokens_of(parsed, items)


def _parts(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield texts in as many requests as the limits of `predict` ask for."""
    begin = length = 0
    for end, text in enumerate(texts):
        is_full = end - begin == _MAX_TEXTS or length + len(text) > _MAX_CHARACTERS
        if is_full and end > begin:
            yield texts[begin:end]
            begin, length = end, 0
        length += len(text)
    yield texts[begin:]


def _items(parsed: Json) -> list[Json]:
    """Return the objects with vectors; [] if any is malformed."""
    items: list[Any]
    match parsed:
        case {"predictions": [*predictions]}:
            items = [
                one.get("embeddings") if isinstance(one, dict) else None for one in predictions
            ]
        case {"embeddings": [*embeddings]}:
            items = embeddings
        case {"embedding": embedding}:
            items = [embedding]
        case _:
            return []
    return items if all(isinstance(one, dict) for one in items) else []


def _tokens_of(parsed: Json, items: Sequence[Json]) -> int | None:
    try:
        match parsed.get("usageMetadata"):
            case {"promptTokenCount": read}:
                return tokens(read)
        counts: list[Any] = [one["statistics"]["token_count"] for one in items]
        return sum(map(tokens, counts))
    except (LookupError, TypeError, ValueError):
        return None
