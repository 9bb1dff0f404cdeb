"""Provider adapter for chat completions, embeddings and transcriptions of OpenAI's API."""

from functools import partial

from gateway.conversation.v1 import conversation_pb2
from gateway.inference.v1.inference_pb2 import EmbedResponse, Event
from services.common.ids import IdGenerator, new_id
from services.common.messages.lazy_request import LazyRequest
from services.common.messages.passthrough_answer import PassthroughAnswer
from services.inference.learned.refusals import changes_messages
from services.inference.offload import mark_large, offload
from services.inference.providers.base import (
    AnswerForm,
    Call,
    EmbeddingCall,
    ForwardCall,
    Target,
    Transcript,
)
from services.inference.providers.openai import forwarding
from services.inference.providers.openai.embeddings import build_embeddings, read_embeddings
from services.inference.providers.openai.endpoints import PathOf
from services.inference.providers.openai.events import (
    StreamReader,
    events_from_whole,
)
from services.inference.providers.openai.fields import Server
from services.inference.providers.openai.passthrough import (
    passthrough_answer,
    plain_answer,
    whole_of_texts,
)
from services.inference.providers.openai.request import build_request
from services.inference.providers.openai.transcriptions import form, read_transcript
from services.inference.providers.sse import is_event_stream
from services.inference.providers.upstream import Upstream
from services.inference.stream.batches import Batches
from services.media.conversion.parts import Source

_PATH = "/chat/completions"
_EMBEDDINGS = "/embeddings"
_TRANSCRIPTIONS = "/audio/transcriptions"
# Size in bytes of an embedding answer that takes some milliseconds to parse.
_LARGE_ANSWER = 1 << 20


class OpenAIProvider:
    """A provider with OpenAI's API; see `services.inference.providers.base.Provider`.

    Args:
        name: the provider's name in the settings.
        upstream: the provider's server.
        pass_stateful: whether callers may refer to objects stored at the provider.
        newest: whether it supports OpenAI's newest message formats.
        fetches_urls: whether it fetches images by URL.
        path_of: returns the path of an endpoint, if it depends on the model or the body.
        new_id: generates ids that the server omits.
    """

    dialect = conversation_pb2.DIALECT_OPENAI
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
        newest: bool,
        fetches_urls: bool,
        path_of: PathOf | None = None,
        new_id: IdGenerator = new_id,
    ) -> None:
        self.name = name
        self._upstream = upstream
        self.pass_stateful = pass_stateful
        self._server = Server(name, newest, fetches_urls, pass_stateful)
        self._path_of = path_of or _usual_path
        self._new_id = new_id
        # Files are sent by id or as bytes only.
        self.fetches = frozenset({conversation_pb2.MEDIA_KIND_IMAGE} if fetches_urls else ())

    def takes_lazy(self, lazy: LazyRequest, refused_fields: frozenset[str]) -> bool:
        """Return whether a conversation can be sent without its canonical messages."""
        is_own = lazy.request.dialect == self.dialect
        if is_own and lazy.requires_official_api and not self._server.newest:
            return False
        return not refused_fields or not changes_messages(refused_fields)

    async def whole(self, call: Call) -> list[Event] | PassthroughAnswer:
        """Return a whole answer; see `Provider.whole`."""
        # The body has no name here: it may be large, and an answer may take minutes.
        answer = await self._upstream.post_unbounded(
            self._path_of(_PATH, call.target.upstream, b""),
            build_request(call, self._server)
            if call.lazy is not None and call.lazy.is_small
            else await offload(build_request, call, self._server),
            headers=call.request_headers(self.dialect) if call.request.headers else (),
            call=call,
            bounds_values=True,
        )
        n = call.request.n or 1
        read: PassthroughAnswer | None = None
        if call.accepts is AnswerForm.PASSTHROUGH:
            read = passthrough_answer(answer, n)
        elif call.accepts is AnswerForm.PLAIN:
            read = plain_answer(answer, n)
        if read is not None:
            return read
        if is_event_stream(answer):
            reader = StreamReader(call, self._upstream, self._new_id)
            return self._upstream.events_of(answer, reader)
        parsed = self._upstream.json_object(answer)
        if call.accepts is AnswerForm.WHOLE:
            event = whole_of_texts(answer, parsed, n)
            if event is not None:
                return [event]
        return events_from_whole(parsed, call, self._upstream, self._new_id)

    def stream(self, call: Call) -> Batches:
        """Stream an answer; see `Provider.stream`."""
        return self._upstream.stream(
            self._path_of(_PATH, call.target.upstream, b""),
            partial(build_request, call, self._server),
            reader=StreamReader(call, self._upstream, self._new_id),
            headers=call.request_headers(self.dialect) if call.request.headers else (),
            call=call,
        )

    async def count_tokens(self, call: Call) -> int | None:
        """Return None: the API has no token counting."""
        return None

    async def embed(self, call: EmbeddingCall) -> EmbedResponse:
        """Return a vector for each text; see `Provider.embed`."""
        body = await offload(build_embeddings, call, self._server)
        headers = call.request_headers(self.dialect)
        path = self._path_of(_EMBEDDINGS, call.target.upstream, b"")
        answer = await self._upstream.post(path, body, headers=headers, call=call)
        if len(answer) > _LARGE_ANSWER:
            mark_large()
        return await offload(read_embeddings, answer, call, self._upstream)

    async def forward(self, call: ForwardCall) -> Batches:
        """Yield the answer of a forwarded request; see `Forwards`."""
        boundary = self._new_id("form-")
        body, content_type = await offload(forwarding.body_of, call, boundary, self._server)
        headers = call.request_headers(self.dialect)
        path = self._path_of(
            forwarding.PATHS[call.sent.operation], call.target.upstream, call.sent.json
        )
        posting = self._upstream.response(
            path, body, headers=headers, call=call, content_type=content_type
        )
        del body
        async with posting as response:
            kind = response.headers.get("content-type", "application/json")
            async for batch in forwarding.read_answer(response.body, kind, call, self._upstream):
                yield batch

    async def transcribe(self, target: Target, sound: Source, language: str) -> Transcript:
        """Return the transcript of a recording; see `Provider.transcribe`."""
        boundary = self._new_id("form-")
        body = form(target.upstream, sound, language, boundary)
        answer = await self._upstream.post(
            self._path_of(_TRANSCRIPTIONS, target.upstream, b""),
            body,
            content_type=f"multipart/form-data; boundary={boundary}",
        )
        return read_transcript(self._upstream.json_object(answer), self.name)

    async def close(self) -> None:
        """Do nothing: the connections belong to the client that the providers share."""


def _usual_path(path: str, model: str, body: bytes) -> str:
    return path
