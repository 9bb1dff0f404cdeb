"""Storage of a response before its end is sent, and appending to its conversation."""

import logging
from collections.abc import Sequence

import grpc
import orjson

from facade.context import Context
from facade.dialects import conversations, responses, stored_responses
from facade.socket_exchange import SocketExchange
from gateway.errors.v1 import errors_pb2
from gateway.memory.v1.responses_pb2 import CheckCapacityRequest, CreateResponseRequest
from services.common.errors import GatewayError, from_rpc_error
from services.common.grpc.channels import Metadata

log = logging.getLogger(__name__)


class ResponseStore:
    """Stores the response to one request.

    Args:
        context: the facade's dependencies.
        metadata: metadata of the gRPC calls.
        response_id: id of the response.
        state: the request's storage options.
    """

    def __init__(
        self, context: Context, metadata: Metadata, response_id: str, state: responses.ResponseState
    ) -> None:
        self._context = context
        self._metadata = metadata
        self._response_id = response_id
        self._state = state

    async def check_capacity(self) -> None:
        """Check that the response can be stored, before it is generated.

        Raises:
            grpc.aio.AioRpcError: the response cannot be stored.
            GatewayError: without `store`, its items cannot be appended to the conversation.
        """
        request = CheckCapacityRequest(input_bytes=sum(map(len, self._state.input_items)))
        try:
            await self._context.responses.CheckCapacity(request, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            if self._state.store:
                raise
            raise conversations.capacity_error(from_rpc_error(error)) from None

    async def store(self, response: bytes) -> None:
        """Store the response object, or append its items to its conversation.

        It is durable when this returns. Storing continues if the client leaves meanwhile.

        Raises:
            GatewayError: the response was not stored.
        """
        state = self._state
        append = state.conversation is not None and stored_responses.is_appended(response)
        if not (state.store or append):
            return
        new = stored_responses.new_response(
            self._response_id,
            state.previous_response_id,
            state.input_items,
            stored_responses.response_content(response),
            state.conversation,
        )
        request = CreateResponseRequest(response=new, append=append, append_only=not state.store)
        try:
            await self._context.responses.CreateResponse(request, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            failure = from_rpc_error(error)
            raise failure if state.store else conversations.capacity_error(failure) from None


class StoredStream:
    """Stores a streamed response before its end is sent; see `facade.sse.EndObserver`.

    Args:
        store: stores the response.
        encoder: has the response object once the answer has ended.
    """

    def __init__(self, store: ResponseStore, encoder: responses.ResponseStream) -> None:
        self._store = store
        self._encoder = encoder

    async def before_end(self) -> None:
        """Store the response."""
        await self._store.store(self._encoder.response)

    async def left(self) -> None:
        """Store the incomplete response as cancelled."""
        self._encoder.error(GatewayError(errors_pb2.REASON_CANCELLED, "the client has left"))
        cancelled = stored_responses.with_status(self._encoder.response, "cancelled")
        try:
            await self._store.store(cancelled)
        except GatewayError as error:
            log.warning("a cancelled response was not stored", extra={"code": error.code})


class ResponseKeeper:
    """Keeps an unstored response on its socket, before its end is sent; see `EndObserver`.

    Args:
        exchange: the request.
        input_items: its whole conversation, as JSON.
        encoder: has the response object once the answer has ended.
    """

    def __init__(
        self,
        exchange: SocketExchange,
        input_items: Sequence[bytes],
        encoder: responses.ResponseStream,
    ) -> None:
        self._exchange = exchange
        self._input_items = input_items
        self._encoder = encoder

    async def before_end(self) -> None:
        """Keep the response, unless it has failed."""
        response = self._encoder.response
        if not stored_responses.is_appended(response):
            return
        content = stored_responses.response_content(response)
        response_id = orjson.loads(content.body)["id"]
        new = stored_responses.new_response(response_id, None, self._input_items, content, None)
        exchange = self._exchange
        exchange.recent.keep(exchange.stream_id, response_id, [*new.input, *new.content.output])

    async def left(self) -> None:
        """Do nothing: the socket is closed."""
