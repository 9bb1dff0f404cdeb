"""Where a server has Gemini's models, and how its other methods are asked for. Pure."""

from collections.abc import Iterator
from typing import Protocol

from services.inference.providers.base import EmbeddingCall
from services.inference.providers.gemini import embeddings, sanitizing
from services.inference.providers.opaque_json import Json
from services.inference.providers.upstream import Upstream
from services.inference.providers.vectors import VectorRequest


class Api(Protocol):
    """The paths and methods of one server."""

    def model_path(self, upstream: str) -> str:
        """Return the path of a model, without a slash before it.

        Raises:
            GatewayError: model_not_found, if the name is malformed.
        """

    def count_body(self, upstream: str, read: Json) -> Json:
        """Return the body of `countTokens` for the fields of a request that the model reads."""

    def batches(self, call: EmbeddingCall, own: Json) -> Iterator[VectorRequest]:
        """Yield the requests of a call for vectors; `own` are fields that every text gets."""

    def read_batch(
        self, answer: bytes, count: int, upstream: Upstream
    ) -> tuple[list[bytes], int | None]:
        """Return the packed vectors of `count` texts, and the texts' tokens if reported.

        Raises:
            UpstreamError: the answer does not have that many vectors of the same length.
        """


class DeveloperApi:
    """Google's Gemini API with its keys (`generativelanguage.googleapis.com`); see `Api`."""

    def model_path(self, upstream: str) -> str:
        """Return the path of a model."""
        return sanitizing.model_path(upstream)

    def count_body(self, upstream: str, read: Json) -> Json:
        """Return the body of `countTokens`."""
        return {"generateContentRequest": {"model": self.model_path(upstream), **read}}

    def batches(self, call: EmbeddingCall, own: Json) -> Iterator[VectorRequest]:
        """Yield the requests of a call for vectors."""
        model = self.model_path(call.target.upstream)
        for body, count in embeddings.build_batches(call, model, own):
            yield VectorRequest(f"/{model}:batchEmbedContents", body, count)

    def read_batch(
        self, answer: bytes, count: int, upstream: Upstream
    ) -> tuple[list[bytes], int | None]:
        """Return the packed vectors of an answer, and its tokens if reported."""
        return embeddings.read_batch(answer, count, upstream)


DEVELOPER_API = DeveloperApi()
