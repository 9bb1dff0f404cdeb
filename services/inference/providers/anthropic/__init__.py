"""Adapter of Anthropic's messages API, and of servers with a compatible one.

`request` (with `content` and `reasoning`) writes the request body, `events` parses the response;
both are pure. This module sends the requests.
"""

from collections.abc import Callable, Mapping
from functools import partial

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Dialect
from gateway.inference.v1.inference_pb2 import EmbedResponse, Event
from services.common.errors import unsupported
from services.common.messages.lazy_request import LazyRequest
from services.common.messages.passthrough_answer import PassthroughAnswer
from services.inference.learned.refusals import changes_messages
from services.inference.offload import offload
from services.inference.providers.anthropic.endpoints import OWN, Endpoint
from services.inference.providers.anthropic.events import StreamReader, events_from_whole
from services.inference.providers.anthropic.passthrough import (
    passthrough_answer,
    plain_answer,
    whole_of_text,
)
from services.inference.providers.anthropic.request import (
    beta_header,
    build_count,
    build_request,
)
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
from services.inference.providers.opaque_json import Json
from services.inference.providers.pruning import without_refused
from services.inference.providers.sse import is_event_stream
from services.inference.providers.upstream import Upstream
from services.inference.stream.batches import Batches
from services.media.conversion.parts import Source

_VERSION = "2023-06-01"
_BY_ADDRESS = (conversation_pb2.MEDIA_KIND_IMAGE, conversation_pb2.MEDIA_KIND_DOCUMENT)


def headers(key: str) -> Mapping[str, str]:
    """Return the headers of every request; without an `x-api-key` if `key` is empty."""
    credentials = {"x-api-key": key} if key else {}
    return {**credentials, "anthropic-version": _VERSION}


class AnthropicProvider:
    """A provider with Anthropic's messages API.

    Args:
        name: the provider's name in the settings.
        upstream: the server; its base URL ends before `/v1`.
        pass_stateful: whether callers may refer to objects stored at the provider.
        fetches_urls: whether the server fetches media by URL.
        official: whether it is Anthropic's own server. Other servers have arbitrary signatures of
            thinking, or none, and still require it in later requests.
        endpoint: its paths and bodies.
        sends_stored_files: whether bodies may have stored files, or are signed.
    """

    dialect: Dialect.ValueType = conversation_pb2.DIALECT_ANTHROPIC
    signs_thinking = True
    prefills = True
    reports_stop_sequence = True

    def __init__(
        self,
        name: str,
        upstream: Upstream,
        *,
        pass_stateful: bool,
        fetches_urls: bool,
        official: bool,
        endpoint: Endpoint = OWN,
        sends_stored_files: bool = True,
    ) -> None:
        self.name = name
        self.checks_signatures = official
        self.sends_stored_files = sends_stored_files
        self._endpoint = endpoint
        self._upstream = upstream
        self.pass_stateful = pass_stateful
        self.fetches = frozenset(_BY_ADDRESS if fetches_urls else ())
        self._rules = {
            "pass_stateful": pass_stateful,
            "fetches_urls": fetches_urls,
            "official": official,
        }

    def takes_lazy(self, lazy: LazyRequest, refused_fields: frozenset[str]) -> bool:
        """Return whether a conversation can be sent without its canonical messages."""
        if lazy.request.dialect != self.dialect:
            # The thinking parameters depend on the canonical messages.
            return not (changes_messages(refused_fields) or lazy.request.HasField("thinking"))
        if lazy.requires_official_api and not self.checks_signatures:
            return False
        return not refused_fields or not changes_messages(refused_fields)

    async def whole(self, call: Call) -> list[Event] | PassthroughAnswer:
        """Return a whole answer; see `Provider.whole`."""
        headers = self._headers(call)
        head = self._endpoint.head(call, headers)
        # The body has no name here: it may be large, and an answer may take minutes.
        answer = await self._upstream.post_unbounded(
            self._endpoint.path(call),
            self._body(call, head)
            if call.lazy is not None and call.lazy.is_small
            else await offload(self._body, call, head),
            headers=headers,
            call=call,
            bounds_values=True,
        )
        read: PassthroughAnswer | None = None
        if call.accepts is AnswerForm.PASSTHROUGH:
            read = passthrough_answer(answer)
        elif call.accepts is AnswerForm.PLAIN:
            read = plain_answer(answer)
        if read is not None:
            return read
        if is_event_stream(answer):
            return self._upstream.events_of(answer, self._reader(call))
        parsed = self._upstream.json_object(answer)
        if call.accepts is AnswerForm.WHOLE:
            event = whole_of_text(answer, parsed)
            if event is not None:
                return [event]
        as_one = call.accepts is not AnswerForm.EVENTS
        translates = call.request.dialect != self.dialect
        return events_from_whole(parsed, self._upstream, translates=translates, as_one=as_one)

    def stream(self, call: Call) -> Batches:
        """Stream an answer; see `Provider.stream`."""
        headers = self._headers(call)
        head = self._endpoint.head(call, headers)
        return self._upstream.stream(
            self._endpoint.path(call),
            partial(self._body, call, head),
            reader=self._reader(call),
            headers=headers,
            call=call,
            framing=self._endpoint.framing,
        )

    def _reader(self, call: Call) -> StreamReader:
        return StreamReader(self._upstream, translates=call.request.dialect != self.dialect)

    def _body(self, call: Call, head: Json, build: Callable[..., bytes] = build_request) -> bytes:
        body = build(call, head, **self._rules)
        return without_refused(call, body) if call.refused_fields else body

    async def count_tokens(self, call: Call) -> int:
        """Return the input tokens as counted by the provider."""
        endpoint, headers = self._endpoint, self._headers(call)
        head = endpoint.count_head(call, headers)
        body = endpoint.count_body(await offload(self._body, call, head, build_count))
        path = endpoint.count_path(call)
        whole = await self._upstream.post(path, body, headers=headers, call=call)
        try:
            return tokens(endpoint.counted(self._upstream.json_object(whole)))
        except ValueError as error:
            raise broken_answer(self.name, "returned no token count") from error

    def _headers(self, call: Call) -> list[tuple[str, str]]:
        return beta_header(call) + call.request_headers(self.dialect)

    async def embed(self, call: EmbeddingCall) -> EmbedResponse:
        """Raise an error: the API has no embeddings."""
        raise unsupported(
            "model",
            f"model: the provider {self.name} does not support embeddings; use an embedding model "
            "of a provider of kind openai or gemini",
        )

    async def transcribe(self, target: Target, sound: Source, language: str) -> Transcript:
        """Raise an error: the API has no transcription."""
        raise no_transcripts(self.name)

    async def close(self) -> None:
        """Do nothing: the connections belong to the client that the providers share."""
