"""Storage of a chat completion before its end is sent."""

import logging
from collections.abc import Sequence
from typing import Any

import grpc
import orjson

from facade.context import Context
from facade.dialects.openai.response import usage_object
from facade.dialects.parsed_request import StoredChat
from facade.dialects.stored_chats.answers import new_chat
from facade.dialects.stored_chats.streams import completion_of
from facade.dialects.stream_formats import StreamFormat
from facade.sse import Encoder
from gateway.conversation.v1.conversation_pb2 import Usage
from gateway.inference.v1.inference_pb2 import Event, RouteInfo
from gateway.memory.v1.chats_pb2 import CreateChatCompletionRequest
from gateway.memory.v1.responses_pb2 import CheckCapacityRequest
from services.common import ids
from services.common.errors import GatewayError, from_rpc_error
from services.common.grpc.channels import Metadata
from services.common.process.offload import offload_if

log = logging.getLogger(__name__)

_PREFIX = "chatcmpl-"
# Bytes of a stream that take some milliseconds to read.
_LARGE = 256 << 10


class ChatStore:
    """Stores the chat completion of one request, under an id of the gateway's.

    Args:
        context: the facade's dependencies.
        metadata: metadata of the gRPC calls.
        stored: what is stored beside the completion.
        new_id: makes the id.

    Attributes:
        id: the id.
    """

    def __init__(
        self,
        context: Context,
        metadata: Metadata,
        stored: StoredChat,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self.id = new_id(_PREFIX)
        self._context = context
        self._metadata = metadata
        self._stored = stored

    async def check_capacity(self) -> None:
        """Check that the chat completion can be stored, before it is generated.

        Raises:
            grpc.aio.AioRpcError: it cannot be stored.
        """
        request = CheckCapacityRequest(input_bytes=len(self._stored.messages))
        await self._context.responses.CheckCapacity(request, metadata=self._metadata)

    async def store(self, completion: dict[str, Any]) -> None:
        """Store a chat completion object; it is durable when this returns.

        Raises:
            GatewayError: it was not stored.
        """
        new = new_chat(completion, self._stored.messages, self._stored.metadata)
        request = CreateChatCompletionRequest(chat_completion=new)
        try:
            await self._context.chats.CreateChatCompletion(request, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None

    async def store_whole(self, body: bytes) -> bytes:
        """Store a whole chat completion; return its JSON with the id under which it is stored.

        Raises:
            GatewayError: it was not stored.
        """
        completion = {**orjson.loads(body), "id": self.id}
        await self.store(completion)
        return orjson.dumps(completion)


class StoredChatStream:
    """An encoder of a stream that is stored before its end is sent; see `EndObserver`.

    Args:
        store: stores the chat completion.
        encoder: encodes the stream.

    Attributes:
        route: the model that serves the answer, once known.
        usage: token usage so far.
    """

    def __init__(self, store: ChatStore, encoder: Encoder) -> None:
        self._store = store
        self._encoder = encoder
        self._written: list[bytes] = []
        self.route: RouteInfo = encoder.route
        self.usage: Usage = encoder.usage

    @property
    def format(self) -> StreamFormat:
        """The format of the stream."""
        return self._encoder.format

    def encode(self, events: Sequence[Event]) -> bytes:
        """Return the bytes of a batch of events; its start has the id of the gateway."""
        written = self._encoder.encode([self._with_id(event) for event in events])
        self.route, self.usage = self._encoder.route, self._encoder.usage
        self._written.append(written)
        return written

    def finish(self) -> bytes:
        """Return the bytes that end a complete answer."""
        end = self._encoder.finish()
        self._written.append(end)
        return end

    def keepalive(self) -> bytes:
        """Return bytes that clients ignore."""
        return self._encoder.keepalive()

    def error(self, error: GatewayError) -> bytes:
        """Return the bytes that end an answer with an error, of which nothing is stored."""
        self._written.clear()
        return self._encoder.error(error)

    async def before_end(self) -> None:
        """Store the chat completion, unless it broke off.

        Raises:
            GatewayError: it was not stored.
        """
        stream = b"".join(self._written)
        self._written.clear()
        completion = await offload_if(len(stream) > _LARGE, completion_of, stream)
        if completion is not None:
            completion.setdefault("usage", usage_object(self.usage))
            await self._store.store(completion)

    async def left(self) -> None:
        """Store nothing: the answer is incomplete."""

    def _with_id(self, event: Event) -> Event:
        if not event.HasField("start"):
            return event
        named = Event()
        named.CopyFrom(event)
        named.start.id = self._store.id
        return named
