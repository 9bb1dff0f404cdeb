"""Google's Gemini API (`generateContent`) as a provider.

`request` (with `content` and `reasoning`) builds request bodies and `events` (with `candidate`)
parses responses; both are pure. This module does the I/O.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Dialect
from gateway.inference.v1.inference_pb2 import EmbedResponse, Event
from services.common.ids import IdGenerator, new_id
from services.common.messages.lazy_request import LazyRequest
from services.common.messages.passthrough_answer import PassthroughAnswer
from services.inference.learned.refusals import GENERATE_CONTENT
from services.inference.offload import offload
from services.inference.providers.base import (
    AnswerForm,
    Call,
    EmbeddingCall,
    Target,
    Transcript,
    no_transcripts,
)
from services.inference.providers.bounds import tokens
from services.inference.providers.failures import broken_answer
from services.inference.providers.gemini import sanitizing
from services.inference.providers.gemini.apis import DEVELOPER_API, Api
from services.inference.providers.gemini.events import AnswerReader
from services.inference.providers.gemini.interaction_answer import InteractionReader
from services.inference.providers.gemini.interaction_body import interaction_body
from services.inference.providers.gemini.passthrough import passthrough_answer
from services.inference.providers.gemini.request import GeminiFields, build_count, build_request
from services.inference.providers.pruning import without_refused
from services.inference.providers.request_fields import Rules
from services.inference.providers.upstream import Upstream
from services.inference.providers.vectors import check_only_texts, whole_response
from services.inference.stream.batches import Batches
from services.media.conversion.parts import Source

_INTERACTIONS = "/interactions"
_BY_ADDRESS = (
    conversation_pb2.MEDIA_KIND_IMAGE,
    conversation_pb2.MEDIA_KIND_DOCUMENT,
    conversation_pb2.MEDIA_KIND_AUDIO,
    conversation_pb2.MEDIA_KIND_VIDEO,
)


def headers(key: str) -> Mapping[str, str]:
    """Return the headers of every request; without a key there are none."""
    return {"x-goog-api-key": key} if key else {}


class GeminiProvider:
    """A server with Google's Gemini API; see `Provider`.

    Args:
        name: the provider's name in the settings.
        upstream: the server; its base URL ends before the paths of `api`.
        pass_stateful: whether callers may refer to state stored at the provider.
        fetches_urls: whether the server fetches media by URL.
        api: its paths and methods.
        new_id: generates ids that the server omits.
    """

    dialect: Dialect.ValueType = conversation_pb2.DIALECT_GEMINI
    # Its thought signatures do not cover text that callers could send back.
    signs_thinking = checks_signatures = False
    prefills = False
    sends_stored_files = True
    reports_stop_sequence = False

    def __init__(
        self,
        name: str,
        upstream: Upstream,
        *,
        pass_stateful: bool,
        fetches_urls: bool,
        api: Api = DEVELOPER_API,
        new_id: IdGenerator = new_id,
    ) -> None:
        self.name = name
        self._upstream = upstream
        self.pass_stateful = pass_stateful
        self._fetches_urls = fetches_urls
        self.fetches = frozenset(_BY_ADDRESS if fetches_urls else ())
        self._api = api
        self._new_id = new_id

    def takes_lazy(self, lazy: LazyRequest, refused_fields: frozenset[str]) -> bool:
        """Return False: requests of this dialect are translated."""
        return False

    async def whole(self, call: Call) -> Sequence[Event] | PassthroughAnswer:
        """Return a whole answer; see `Provider.whole`."""
        if GENERATE_CONTENT in call.refused_fields:
            answer = await self._upstream.post_unbounded(
                _INTERACTIONS, await offload(self._interaction, call, is_streamed=False), call=call
            )
            return self._upstream.events_of(answer, self._reader(call, InteractionReader))
        path = f"/{self._api.model_path(call.target.upstream)}:generateContent"
        answer = await self._upstream.post_unbounded(
            path,
            await offload(self._body, call),
            headers=call.request_headers(self.dialect),
            call=call,
        )
        if call.accepts is AnswerForm.PASSTHROUGH:
            passed = passthrough_answer(answer, max(1, call.request.n), call.target.upstream)
            if passed is not None:
                return passed
        reader = self._reader(call)
        return self._upstream.events_of(answer, reader)

    def stream(self, call: Call) -> Batches:
        """Yield a streamed answer; see `Provider.stream`."""
        if GENERATE_CONTENT in call.refused_fields:
            return self._upstream.stream(
                _INTERACTIONS,
                partial(self._interaction, call, is_streamed=True),
                reader=self._reader(call, InteractionReader),
                call=call,
            )
        path = f"/{self._api.model_path(call.target.upstream)}:streamGenerateContent?alt=sse"
        return self._upstream.stream(
            path,
            partial(self._body, call),
            reader=self._reader(call),
            headers=call.request_headers(self.dialect),
            call=call,
        )

    def _reader(self, call: Call, reader: type[AnswerReader] = AnswerReader) -> AnswerReader:
        is_native = call.request.dialect == self.dialect
        names = {} if is_native else _names(call)
        return reader(call, self._upstream, names, self._new_id, is_native=is_native)

    def _body(self, call: Call) -> bytes:
        body = build_request(
            call, pass_stateful=self.pass_stateful, fetches_urls=self._fetches_urls
        )
        return without_refused(call, body) if call.refused_fields else body

    def _interaction(self, call: Call, *, is_streamed: bool) -> bytes:
        return interaction_body(self._body(call), call, is_streamed=is_streamed)

    async def count_tokens(self, call: Call) -> int:
        """Return the input tokens as counted by the provider."""
        model = self._api.model_path(call.target.upstream)
        body = await offload(
            build_count,
            call,
            self._api.count_body,
            pass_stateful=self.pass_stateful,
            fetches_urls=self._fetches_urls,
        )
        whole = await self._upstream.post(f"/{model}:countTokens", body)
        try:
            return tokens(self._upstream.json_object(whole).get("totalTokens"))
        except ValueError as error:
            raise broken_answer(self.name, "returned no token count") from error

    async def embed(self, call: EmbeddingCall) -> EmbedResponse:
        """Return a vector for each text; see `Provider.embed`."""
        fields = GeminiFields(call, Rules(self.pass_stateful))
        own = check_only_texts(call, fields, self.name)
        vectors: list[bytes] = []
        counted: int | None = 0
        # Sequentially: each request counts towards Google's rate limit.
        for path, body, count in self._api.batches(call, own):
            answer = await self._upstream.post(path, body, call=call)
            read, tokens_read = await offload(self._api.read_batch, answer, count, self._upstream)
            vectors += read
            counted = None if counted is None or tokens_read is None else counted + tokens_read
        return whole_response(call, vectors, counted, self.name)

    async def transcribe(self, target: Target, sound: Source, language: str) -> Transcript:
        """Raise an error: the API has no transcription."""
        raise no_transcripts(self.name)

    async def close(self) -> None:
        """Do nothing: the connections belong to the client that the providers share."""


def _names(call: Call) -> Mapping[str, str]:
    """Return the caller's tool names, by the provider's names."""
    return sanitizing.given_names(tool.name for tool in call.request.tools)
