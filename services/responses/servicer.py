"""The gRPC servicer of ResponseService: validates requests and converts results."""

from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any

import grpc

from gateway.memory.v1 import responses_pb2, responses_pb2_grpc
from gateway.memory.v1.responses_pb2 import (
    NewResponse,
    ResponseItem,
    RunResponseRequest,
    RunResponseResponse,
)
from services.common.errors import invalid
from services.common.grpc.authentication import Caller, caller
from services.common.ids import is_conversation_id
from services.common.plans import limit_of, plan_name
from services.common.process.byte_budget import ByteBudget, load_charged, reading_charge
from services.common.settings import MemoryStorage
from services.common.storage.disk import DiskReserve
from services.responses.charged_reads import reading_items
from services.responses.conversations.rows import ReadItems
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

Context = grpc.aio.ServicerContext[Any, Any]


class ResponseServicer(responses_pb2_grpc.ResponseServiceServicer):
    """Serves the RPCs of `responses.proto`; failures are raised as GatewayError.

    Args:
        repository: the stored responses.
        runs: the responses that are generated in the background.
        reader: reads the conversations that responses continue.
        storage: storage quotas of users, by plan.
        reserve: the free disk space that storing requires.
        budget: limits the bytes that the process holds.
    """

    def __init__(
        self,
        repository: ResponseRepository,
        runs: ResponseRuns,
        reader: ResponseChainReader,
        storage: MemoryStorage,
        reserve: DiskReserve,
        budget: ByteBudget,
    ) -> None:
        self._budget = budget
        self._repository = repository
        self._runs = runs
        self._reader = reader
        self._storage = storage
        self._reserve = reserve

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
        """Store a response that has ended."""
        owner = caller.get()
        _check_new(request.response, "response.")
        self._reserve.check()
        await self._repository.create(
            owner.user_id, self._max_bytes(owner), request.response, append=request.append
        )
        return responses_pb2.CreateResponseResponse()

    async def RunResponse(
        self, request_iterator: AsyncIterator[RunResponseRequest], context: Context
    ) -> AsyncIterator[RunResponseResponse]:
        """Store a queued response, and hold its lease until it has ended."""
        owner = caller.get()
        steps = aiter(request_iterator)
        first = await anext(steps, RunResponseRequest())
        _check_step(first, "create")
        _check_new(first.create, "create.")
        self._reserve.check()
        async with self._runs.run(owner.user_id, self._max_bytes(owner), first.create) as run:
            del first
            yield RunResponseResponse(created=responses_pb2.ResponseCreated())
            step = await run.wait_unless_lost(anext(steps, None))
            if step is not None and step.HasField("start"):
                await run.start()
                yield RunResponseResponse(started=responses_pb2.ResponseStarted())
                step = await run.wait_unless_lost(anext(steps, None))
            if step is None:
                return
            _check_step(step, "finish")
            check_items(step.finish.content.output, "finish.content.output")
            end = step.finish
            is_stored = await run.finish(end.content, end.substitute_body, append=end.append)
            finished = responses_pb2.ResponseFinished(stored_substitute=not is_stored)
            yield RunResponseResponse(finished=finished)

    async def GetResponse(
        self, request: responses_pb2.GetResponseRequest, context: Context
    ) -> responses_pb2.GetResponseResponse:
        """Return a response; with `wait_ms`, once it has ended or the time is over."""
        if request.wait_ms > _MAX_WAIT_MS:
            raise invalid("wait_ms", f"wait_ms: must be at most {_MAX_WAIT_MS}")
        user_id = caller.get().user_id
        with reading_charge(self._budget, user_id) as charge:
            found = await self._runs.wait(
                user_id,
                _possible(request.id),
                request.wait_ms / 1000,
                charge,
                with_events=request.with_events,
            )
            return responses_pb2.GetResponseResponse(response=found)

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
            found = await load_charged(charge, ITEM_COST, read)
            items = found.items if request.ascending else found.items[::-1]
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

        async with reading_items(self._budget, user_id, context, request.max_bytes, read) as found:
            return responses_pb2.GetResponseChainResponse(
                items=found.items, omitted_bytes=found.omitted_bytes
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

        async with reading_items(self._budget, user_id, context, request.max_bytes, read) as found:
            return responses_pb2.FindItemsResponse(
                items=found.items, omitted_bytes=found.omitted_bytes
            )

    def _max_bytes(self, owner: Caller) -> int:
        return limit_of(self._storage, plan_name(owner.plan))


def _check_step(step: RunResponseRequest, expected: str) -> None:
    if step.WhichOneof("step") != expected:
        raise invalid(expected, f"{expected}: must be the next message")


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
