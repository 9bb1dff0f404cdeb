"""Storage of a response before its end is sent, and appending to its conversation."""

import asyncio
import logging

import grpc

from facade.context import Context
from facade.dialects import conversations, responses, stored_responses
from gateway.errors.v1 import errors_pb2
from gateway.memory.v1.conversations_pb2 import CreateItemsRequest
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
        """Store the response object; it is durable when this returns.

        Storing continues if the client leaves meanwhile.

        Raises:
            GatewayError: the response was not stored.
        """
        await asyncio.shield(self._context.background.spawn(self._store(response)))

    def store_later(self, response: bytes) -> None:
        """Store the response object for a client that has left."""
        self._context.background.spawn(self._try_to_store(response))

    async def _store(self, response: bytes) -> None:
        state = self._state
        append = state.conversation is not None and stored_responses.is_appended(response)
        try:
            if state.store:
                new = stored_responses.new_response(
                    self._response_id,
                    state.previous_response_id,
                    state.input_items,
                    response,
                    state.conversation,
                )
                request = CreateResponseRequest(response=new, append=append)
                await self._context.responses.CreateResponse(request, metadata=self._metadata)
            elif append:
                await self._append(response)
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None

    async def _append(self, response: bytes) -> None:
        """Append the items of a response that is not stored to its conversation."""
        assert self._state.conversation is not None
        request = CreateItemsRequest(
            conversation_id=self._state.conversation.id,
            items=[
                *stored_responses.input_items(self._response_id, self._state.input_items),
                *stored_responses.response_content(response).output,
            ],
        )
        try:
            await self._context.conversations.CreateItems(request, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            failure = from_rpc_error(error)
            # As for stored responses, it is no error if the conversation has been deleted.
            if failure.reason != errors_pb2.REASON_NOT_FOUND:
                raise conversations.capacity_error(failure) from None

    async def _try_to_store(self, response: bytes) -> None:
        try:
            await self._store(response)
        except GatewayError as error:
            log.warning("a cancelled response was not stored", extra={"code": error.code})


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

    def left(self) -> None:
        """Store the incomplete response as cancelled."""
        self._encoder.error(GatewayError(errors_pb2.REASON_CANCELLED, "the client has left"))
        self._store.store_later(stored_responses.with_status(self._encoder.response, "cancelled"))
