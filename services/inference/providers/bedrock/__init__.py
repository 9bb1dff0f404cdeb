"""Amazon Bedrock's Converse API as a provider, for the models of all makers.

`request` (with `content` and `reasoning`) writes request bodies, `events` (with `blocks`) parses
answers, `frames` splits streams; these are pure. `credentials` and `signing` authorize requests.
This module sends them.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from gateway.conversation.v1.conversation_pb2 import DIALECT_UNSPECIFIED, Dialect, MediaKind
from gateway.inference.v1.inference_pb2 import EmbedResponse, Event
from services.common.ids import IdGenerator, new_id
from services.common.messages.lazy_request import LazyRequest
from services.common.settings import Guardrail
from services.inference.offload import offload
from services.inference.providers.base import (
    Call,
    EmbeddingCall,
    Target,
    Transcript,
    no_transcripts,
)
from services.inference.providers.bedrock import sanitizing
from services.inference.providers.bedrock.embeddings import batches, read_batch
from services.inference.providers.bedrock.errors import classify
from services.inference.providers.bedrock.events import AnswerReader
from services.inference.providers.bedrock.frames import CONTENT_TYPE, FrameSplitter
from services.inference.providers.bedrock.request import build_count, build_request
from services.inference.providers.bounds import tokens
from services.inference.providers.failures import broken_answer
from services.inference.providers.pruning import without_refused
from services.inference.providers.request_fields import RequestFields, Rules
from services.inference.providers.upstream import Framing, Upstream
from services.inference.providers.vectors import (
    VectorRequest,
    check_only_texts,
    whole_response,
)
from services.inference.stream.batches import Batches
from services.media.conversion.parts import Source

_CONCURRENT_EMBEDDINGS = 8

__all__ = ["BedrockProvider", "classify", "guardrail_headers"]


def guardrail_headers(guardrail: Guardrail | None) -> Mapping[str, str]:
    """Return the headers of InvokeModel for a guardrail."""
    if guardrail is None:
        return {}
    return {
        "x-amzn-bedrock-guardrailidentifier": guardrail.id,
        "x-amzn-bedrock-guardrailversion": guardrail.version,
    }


class BedrockProvider:
    """Bedrock in one region; see `Provider`.

    Args:
        name: the provider's name in the settings.
        upstream: the server of `bedrock-runtime`.
        pass_stateful: whether callers may refer to state stored at the provider.
        guardrail: the guardrail of all requests.
        new_id: generates ids of answers.
    """

    dialect: Dialect.ValueType = DIALECT_UNSPECIFIED
    # Of Anthropic's models; the signatures are those of Anthropic's own API.
    signs_thinking = checks_signatures = True
    # Few families continue a message.
    prefills = False
    # A signature covers the whole body.
    sends_stored_files = False
    reports_stop_sequence = False
    fetches: frozenset[MediaKind.ValueType] = frozenset()

    def __init__(
        self,
        name: str,
        upstream: Upstream,
        *,
        pass_stateful: bool,
        guardrail: Guardrail | None = None,
        new_id: IdGenerator = new_id,
    ) -> None:
        self.name = name
        self._upstream = upstream
        self.pass_stateful = pass_stateful
        self._guardrail = guardrail
        self._new_id = new_id
        self._framing = Framing(CONTENT_TYPE, partial(FrameSplitter, name))

    def takes_lazy(self, lazy: LazyRequest, refused_fields: frozenset[str]) -> bool:
        """Return False: callers do not use this API."""
        return False

    async def whole(self, call: Call) -> Sequence[Event]:
        """Return a whole answer; see `Provider.whole`."""
        path = f"{sanitizing.model_path(call.target.upstream)}/converse"
        answer = await self._upstream.post_unbounded(
            path, await offload(self._body, call), call=call
        )
        return self._upstream.events_of(answer, self._reader(call))

    def stream(self, call: Call) -> Batches:
        """Yield a streamed answer; see `Provider.stream`."""
        path = f"{sanitizing.model_path(call.target.upstream)}/converse-stream"
        return self._upstream.stream(
            path,
            partial(self._body, call),
            reader=self._reader(call),
            call=call,
            framing=self._framing,
        )

    def _reader(self, call: Call) -> AnswerReader:
        return AnswerReader(call, self._upstream, _names(call), self._new_id)

    def _body(self, call: Call, build: Callable[..., bytes] = build_request) -> bytes:
        body = build(call, pass_stateful=self.pass_stateful, guardrail=self._guardrail)
        return without_refused(call, body) if call.refused_fields else body

    async def count_tokens(self, call: Call) -> int:
        """Return the input tokens as counted by the provider."""
        path = f"{sanitizing.model_path(call.target.upstream)}/count-tokens"
        body = await offload(self._body, call, build_count)
        whole = await self._upstream.post(path, body, call=call)
        try:
            return tokens(self._upstream.json_object(whole).get("inputTokens"))
        except ValueError as error:
            raise broken_answer(self.name, "returned no token count") from error

    async def embed(self, call: EmbeddingCall) -> EmbedResponse:
        """Return a vector for each text; see `Provider.embed`."""
        check_only_texts(call, RequestFields(call, Rules(self.pass_stateful)), self.name)
        vectors: list[bytes] = []
        counted: int | None = 0
        # Titan takes one text a request.
        requests = list(batches(call, self.name))
        for begin in range(0, len(requests), _CONCURRENT_EMBEDDINGS):
            some = requests[begin : begin + _CONCURRENT_EMBEDDINGS]
            for read, tokens_read in await self._embed_all(some, call):
                vectors += read
                counted = None if counted is None or tokens_read is None else counted + tokens_read
        return whole_response(call, vectors, counted, self.name)

    async def _embed_all(
        self, requests: Sequence[VectorRequest], call: EmbeddingCall
    ) -> Sequence[tuple[list[bytes], int | None]]:
        """Send several requests at once; return the vectors and the tokens of each.

        A failure cancels the others.
        """
        sending = [asyncio.create_task(self._embed(one, call)) for one in requests]
        try:
            return await asyncio.gather(*sending)
        finally:
            for one in sending:
                one.cancel()

    async def _embed(
        self, request: VectorRequest, call: EmbeddingCall
    ) -> tuple[list[bytes], int | None]:
        own = replace(call)  # has the headers of this answer
        answer = await self._upstream.post(request.path, request.body, call=own)
        call.answer_headers = own.answer_headers
        return await offload(read_batch, answer, request.texts, own.answer_headers, self._upstream)

    async def transcribe(self, target: Target, sound: Source, language: str) -> Transcript:
        """Raise an error: the API has no transcription."""
        raise no_transcripts(self.name)

    async def close(self) -> None:
        """Do nothing: the connections belong to the client that the providers share."""


def _names(call: Call) -> Mapping[str, str]:
    """Return the caller's tool names, by the provider's names."""
    return sanitizing.given_names(tool.name for tool in call.request.tools)
