"""The gRPC servicer of ResponseService: validates requests and converts results."""

from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import aclosing
from typing import Any

import grpc

from gateway.memory.v1 import responses_pb2, responses_pb2_grpc
from gateway.memory.v1.responses_pb2 import (
    NewResponse,
    ResponseItem,
    RunInBackgroundRequest,
    RunInBackgroundResponse,
)
from services.common.errors import invalid
from services.common.grpc.authentication import Caller, caller
from services.common.grpc.channels import forwarded_metadata
from services.common.ids import is_conversation_id
from services.common.plans import limit_of, plan_name
from services.common.process.byte_budget import ByteBudget, load_charged, reading_charge
from services.common.process.offload import offload_if
from services.common.settings import MemoryStorage
from services.common.storage.disk import DiskReserve
from services.responses.background import BackgroundResponses
from services.responses.charged_reads import reading_items
from services.responses.conversations.repository import ConversationRepository
from services.responses.conversations.rows import ReadItems
from services.responses.detached_writes import DetachedWrites
from services.responses.item_checks import check_items, is_item_id, page_size
from services.responses.records import (
    ITEM_COST,
    MAX_ID,
    is_response_id,
    item_not_found,
    not_found,
)
from services.responses.repository import ResponseRepository
from services.responses.response_chain import ResponseChainReader
from services.responses.runs import ResponseRuns

SERVICE_NAME = responses_pb2.DESCRIPTOR.services_by_name["ResponseService"].full_name

_MAX_WAIT_MS = 30_000
_MAX_FOUND_ITEMS = 10_000
# Items of more bytes are copied in a thread.
_LARGE = 256 << 10

Context = grpc.aio.ServicerContext[Any, Any]


class ResponseServicer(responses_pb2_grpc.ResponseServiceServicer):
    """Serves the RPCs of `responses.proto`; failures are raised as GatewayError.

    Args:
        repository: the stored responses.
        conversations: the stored conversations.
        runs: the leases of responses that are generated, and the calls that wait for responses.
        background: generates responses in the background.
        reader: reads the conversations that responses continue.
        storage: storage quotas of users, by plan.
        reserve: the free disk space that storing requires.
        budget: limits the bytes that the process holds.

    Attributes:
        writes: the responses that are being stored.
    """

    def __init__(
        self,
        repository: ResponseRepository,
        conversations: ConversationRepository,
        runs: ResponseRuns,
        background: BackgroundResponses,
        reader: ResponseChainReader,
        storage: MemoryStorage,
        reserve: DiskReserve,
        budget: ByteBudget,
    ) -> None:
        self._budget = budget
        self._repository = repository
        self._conversations = conversations
        self._runs = runs
        self._background = background
        self._reader = reader
        self._storage = storage
        self._reserve = reserve
        self.writes = DetachedWrites()

    async def CheckCapacity(
        self, request: responses_pb2.CheckCapacityRequest, context: Context
    ) -> responses_pb2.CheckCapacityResponse:
        """Check that a response could be stored."""
        owner = caller.get()
        self._reserve.check()
        await self._repository.check_capacity(
            owner.user_id, self._max_bytes(owner), request.input_bytes
        )
        return responses_pb2.CheckCapacityResponse()

    async def CreateResponse(
        self, request: responses_pb2.CreateResponseRequest, context: Context
    ) -> responses_pb2.CreateResponseResponse:
        """Store a response that has ended, or append its items."""
        owner = caller.get()
        new = request.response
        _check_new(new, "response.")
        if request.append_only and not new.HasField("conversation"):
            raise invalid(
                "response.conversation", "response.conversation: is required with append_only"
            )
        self._reserve.check()
        quota = self._max_bytes(owner)
        if request.append_only:
            items = [*new.input, *new.content.output]
            write = self._conversations.append_if_present(
                owner.user_id, quota, new.conversation.id, items
            )
        else:
            write = self._repository.create(owner.user_id, quota, new, append=request.append)
        await self.writes.complete(write)
        return responses_pb2.CreateResponseResponse()

    async def RunInBackground(
        self, request_iterator: AsyncIterator[RunInBackgroundRequest], context: Context
    ) -> AsyncIterator[RunInBackgroundResponse]:
        """Store a queued response, start its generation, and yield its events if it is streamed."""
        owner = caller.get()
        steps = aiter(request_iterator)
        create = _step(await anext(steps, None), "create").create
        _check_new(create.response, "create.response.")
        self._reserve.check()
        generation = await self._background.begin(
            owner.user_id,
            self._max_bytes(owner),
            create,
            _step(await anext(steps, None), "generate").generate,
            forwarded_metadata(context),
        )
        is_streamed = create.stream
        del create  # it may be large
        yield RunInBackgroundResponse(queued=generation.queued)
        if is_streamed:
            async with aclosing(generation.events.follow()) as pieces:
                async for events in pieces:
                    yield RunInBackgroundResponse(events=events)

    async def GetResponse(
        self, request: responses_pb2.GetResponseRequest, context: Context
    ) -> responses_pb2.GetResponseResponse:
        """Return a response; with `wait_ms`, once it has ended or the time is over."""
        if request.wait_ms > _MAX_WAIT_MS:
            raise invalid("wait_ms", f"wait_ms: must be at most {_MAX_WAIT_MS}")
        user_id = caller.get().user_id
        with reading_charge(self._budget, user_id) as charge:
            response = await self._runs.wait(
                user_id,
                _possible(request.id),
                request.wait_ms / 1000,
                charge,
                with_events=request.with_events,
            )
            return responses_pb2.GetResponseResponse(response=response)

    async def CancelResponse(
        self, request: responses_pb2.CancelResponseRequest, context: Context
    ) -> responses_pb2.CancelResponseResponse:
        """Cancel a response."""
        cancelled = await self._runs.cancel(caller.get().user_id, _possible(request.id))
        return responses_pb2.CancelResponseResponse(response=cancelled)

    async def DeleteResponse(
        self, request: responses_pb2.DeleteResponseRequest, context: Context
    ) -> responses_pb2.DeleteResponseResponse:
        """Delete a response."""
        await self._runs.delete(caller.get().user_id, _possible(request.id))
        return responses_pb2.DeleteResponseResponse()

    async def ListInputItems(
        self, request: responses_pb2.ListInputItemsRequest, context: Context
    ) -> responses_pb2.ListInputItemsResponse:
        """List the items that a response was generated from."""
        size = page_size(request)
        user_id, response_id = caller.get().user_id, _possible(request.id)

        def read(max_bytes: int) -> Coroutine[Any, Any, ReadItems]:
            return self._reader.read(
                user_id, response_id, with_last_output=False, max_bytes=max_bytes
            )

        with reading_charge(self._budget, user_id) as charge:
            input_items = await load_charged(charge, ITEM_COST, read)
            items = input_items.items if request.ascending else input_items.items[::-1]
            first = _place_after(items, request.after) if request.after else 0
            return responses_pb2.ListInputItemsResponse(
                items=items[first : first + size], has_more=len(items) > first + size
            )

    async def GetResponseChain(
        self, request: responses_pb2.GetResponseChainRequest, context: Context
    ) -> responses_pb2.GetResponseChainResponse:
        """Return the conversation up to a response."""
        user_id, response_id = caller.get().user_id, _possible(request.id)

        def read(max_bytes: int | None) -> Coroutine[Any, Any, ReadItems]:
            return self._reader.read(user_id, response_id, max_bytes=max_bytes)

        async with reading_items(self._budget, user_id, context, request.max_bytes, read) as chain:
            return await offload_if(
                sum([item.ByteSize() for item in chain.items]) > _LARGE,
                responses_pb2.GetResponseChainResponse,
                items=chain.items,
                omitted_bytes=chain.omitted_bytes,
            )

    async def FindItems(
        self, request: responses_pb2.FindItemsRequest, context: Context
    ) -> responses_pb2.FindItemsResponse:
        """Return output items by their ids."""
        if not 1 <= len(request.ids) <= _MAX_FOUND_ITEMS:
            raise invalid("ids", f"ids: must contain 1 to {_MAX_FOUND_ITEMS} ids")
        for place, item_id in enumerate(request.ids):
            if not is_item_id(item_id):
                raise item_not_found(item_id, place)
        user_id = caller.get().user_id

        def read(max_bytes: int | None) -> Coroutine[Any, Any, ReadItems]:
            return self._reader.find_items(user_id, request.ids, max_bytes)

        async with reading_items(
            self._budget, user_id, context, request.max_bytes, read
        ) as stored_items:
            return responses_pb2.FindItemsResponse(
                items=stored_items.items, omitted_bytes=stored_items.omitted_bytes
            )

    def _max_bytes(self, owner: Caller) -> int:
        return limit_of(self._storage, plan_name(owner.plan))


def _step(message: RunInBackgroundRequest | None, expected: str) -> RunInBackgroundRequest:
    """Return a message of a caller, checked to be the expected one.

    Raises:
        GatewayError: invalid.
    """
    if message is None or message.WhichOneof("step") != expected:
        raise invalid(expected, f"{expected}: must be the next message")
    return message


def _check_new(new: NewResponse, path: str) -> None:
    if not is_response_id(new.id):
        raise invalid(f"{path}id", f"{path}id: must be 1 to {MAX_ID} printable characters")
    if new.previous_id and not is_response_id(new.previous_id):
        raise invalid(
            f"{path}previous_id", f"{path}previous_id: must be 1 to {MAX_ID} printable characters"
        )
    if new.HasField("conversation"):
        _check_conversation(new, path)
    check_items(new.input, f"{path}input")
    check_items(new.content.output, f"{path}content.output")


def _check_conversation(new: NewResponse, path: str) -> None:
    if new.previous_id:
        name = f"{path}conversation"
        raise invalid(name, f"{name}: cannot be combined with previous_id")
    if not is_conversation_id(new.conversation.id):
        name = f"{path}conversation.id"
        raise invalid(name, f"{name}: must be the id of a conversation")


def _possible(response_id: str) -> str:
    """Return a response id, checked to be valid.

    Raises:
        GatewayError: not_found, no response can have that id.
    """
    if not is_response_id(response_id):
        raise not_found(response_id)
    return response_id


def _place_after(items: Sequence[ResponseItem], item_id: str) -> int:
    for place, item in enumerate(items):
        if item.id == item_id:
            return place + 1
    raise invalid("after", "after: must be the id of an item of this list")
