"""Provider adapter for OpenAI's API of responses."""

from collections.abc import Callable
from functools import partial

from gateway.conversation.v1 import conversation_pb2
from gateway.inference.v1.inference_pb2 import Compaction, Event
from services.common.ids import IdGenerator, new_id
from services.common.messages.lazy_request import LazyRequest
from services.common.messages.passthrough_answer import PassthroughAnswer
from services.inference.learned.refusals import ENCRYPTED_REASONING, changes_messages
from services.inference.offload import offload
from services.inference.providers.base import AnswerForm, Call
from services.inference.providers.bounds import tokens
from services.inference.providers.failures import broken_answer
from services.inference.providers.openai import OpenAIProvider
from services.inference.providers.openai.fields import Server
from services.inference.providers.openai_responses.endpoint import EndpointSupport
from services.inference.providers.openai_responses.events import StreamReader
from services.inference.providers.openai_responses.native_events import NativeReader
from services.inference.providers.openai_responses.request import (
    REASONING_EFFORT,
    VERBOSITY,
    build_compaction,
    build_count,
    build_request,
)
from services.inference.providers.openai_responses.response_objects import (
    compacted_answer,
    passthrough,
)
from services.inference.providers.pruning import without_refused
from services.inference.providers.upstream import Upstream
from services.inference.stream.batches import Batches

_PATH = "/responses"
_COUNT = f"{_PATH}/input_tokens"
COMPACT = f"{_PATH}/compact"
# Names in `refused_fields` that differ from the field with the value, and that field.
_HOLDERS = (
    (ENCRYPTED_REASONING, "include"),
    (REASONING_EFFORT, "reasoning"),
    (VERBOSITY, "text"),
)


class ResponsesProvider(OpenAIProvider):
    """A server with OpenAI's API, called for requests of the dialect of responses.

    Args:
        name: the provider's name in the settings.
        upstream: the provider's server.
        counting: the same server, whose errors about a path say nothing about the endpoint.
        endpoint: whether the server supports the endpoint.
        compactor: the same server, whose errors may say that it compacts no conversations.
        compacting: whether it compacts conversations.
        pass_stateful: whether callers may refer to objects stored at the provider.
        newest: whether it is OpenAI's own server, which accepts no thinking that it cannot decrypt.
        fetches_urls: whether it fetches images and documents by URL.
        new_id: generates ids that the server omits.
    """

    dialect = conversation_pb2.DIALECT_RESPONSES
    checks_signatures = True

    def __init__(
        self,
        name: str,
        upstream: Upstream,
        counting: Upstream,
        endpoint: EndpointSupport,
        compactor: Upstream,
        compacting: EndpointSupport,
        *,
        pass_stateful: bool,
        newest: bool,
        fetches_urls: bool,
        new_id: IdGenerator = new_id,
    ) -> None:
        super().__init__(
            name,
            upstream,
            pass_stateful=pass_stateful,
            newest=newest,
            fetches_urls=fetches_urls,
            new_id=new_id,
        )
        self._counting = counting
        self._endpoint = endpoint
        self._compactor = compactor
        self._compacting = compacting
        kinds = (conversation_pb2.MEDIA_KIND_IMAGE, conversation_pb2.MEDIA_KIND_DOCUMENT)
        self.fetches = frozenset(kinds if fetches_urls else ())

    @property
    def is_supported(self) -> bool:
        """Whether the server supports the endpoint; True until it answers otherwise."""
        return self._endpoint.is_supported

    def takes_lazy(self, lazy: LazyRequest, refused_fields: frozenset[str]) -> bool:
        """Return whether a conversation can be sent without its canonical messages."""
        if lazy.request.dialect != self.dialect:
            return False
        return not refused_fields or not (
            changes_messages(refused_fields)
            or any(name in refused_fields and field in lazy.fields for name, field in _HOLDERS)
        )

    @property
    def compacts(self) -> bool:
        """Whether the server compacts conversations; True until it answers otherwise."""
        return self._compacting.is_supported

    async def whole(self, call: Call) -> list[Event] | PassthroughAnswer:
        """Return a whole answer; see `Provider.whole`."""
        if call.request.compaction.mode == Compaction.MODE_ENDPOINT:
            return await self._compacted(call)
        # The body has no name here: it may be large, and an answer may take minutes.
        answer = await self._upstream.post_unbounded(
            _PATH,
            self._body(call)
            if call.lazy is not None and call.lazy.is_small
            else await offload(self._body, call),
            headers=call.request_headers(self.dialect),
            call=call,
            bounds_values=call.accepts is AnswerForm.PASSTHROUGH,
        )
        if call.accepts is AnswerForm.PASSTHROUGH:
            passed = passthrough(answer)
            if passed is not None:
                return passed
        reader = StreamReader(call, self._upstream, self._new_id)
        return self._upstream.events_of(answer, reader)

    def stream(self, call: Call) -> Batches:
        """Stream an answer; see `Provider.stream`."""
        reader = NativeReader if call.accepts is AnswerForm.PASSTHROUGH else StreamReader
        return self._upstream.stream(
            _PATH,
            partial(self._body, call),
            reader=reader(call, self._upstream, self._new_id),
            headers=call.request_headers(self.dialect),
            call=call,
        )

    async def count_tokens(self, call: Call) -> int:
        """Return the input tokens as counted by the provider."""
        body = await offload(self._body, call, build_count)
        answer = await self._counting.post(
            _COUNT, body, headers=call.request_headers(self.dialect), call=call
        )
        try:
            return tokens(self._counting.json_object(answer).get("input_tokens"))
        except ValueError as error:
            raise broken_answer(self.name, "returned no token count") from error

    async def _compacted(self, call: Call) -> PassthroughAnswer:
        """Return a conversation as compacted by the provider.

        Raises:
            UpstreamError: the provider failed.
        """
        body = await offload(self._body, call, build_compaction)
        answer = await self._compactor.post(
            COMPACT, body, headers=call.request_headers(self.dialect), call=call
        )
        compacted = compacted_answer(answer)
        if compacted is None:
            raise broken_answer(self.name, "returned no compacted conversation")
        return compacted

    def _body(self, call: Call, build: Callable[[Call, Server], bytes] = build_request) -> bytes:
        body = build(call, self._server)
        return without_refused(call, body) if call.refused_fields else body
