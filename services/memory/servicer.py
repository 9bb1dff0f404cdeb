"""The gRPC servicer of MemoryService: validates requests and converts results."""

from collections.abc import AsyncIterator
from typing import Any

import grpc

from gateway.memory.v1 import memory_pb2, memory_pb2_grpc
from gateway.memory.v1.memory_pb2 import BeginTurn, RunTurnRequest, RunTurnResponse
from services.common.errors import GatewayError, invalid
from services.common.grpc.authentication import caller
from services.common.text.texts import MAX_NAME
from services.memory.jobs.windows import SMALLEST_WINDOW
from services.memory.management import MemoryManagement
from services.memory.storage.memory_records import is_memory_id
from services.memory.turns.turn_service import TurnService

_MAX_QUERY = 10_000

Context = grpc.aio.ServicerContext[Any, Any]


class MemoryServicer(memory_pb2_grpc.MemoryServiceServicer):
    """Serves the RPCs of `memory.proto`; failures are raised as GatewayError."""

    def __init__(self, turns: TurnService, management: MemoryManagement) -> None:
        self._turns = turns
        self._management = management

    async def RunTurn(
        self, request_iterator: AsyncIterator[RunTurnRequest], context: Context
    ) -> AsyncIterator[RunTurnResponse]:
        """Begin a turn, and commit it when the caller sends `commit`."""
        steps = aiter(request_iterator)
        first = await anext(steps, RunTurnRequest())
        if not first.HasField("begin"):
            raise _out_of_order("begin")
        _check_begin(first.begin)
        async with self._turns.begin(caller.get(), first.begin) as turn:
            yield RunTurnResponse(context=turn.context)
            second = await anext(steps, None)
            if second is None:
                return
            if not second.HasField("commit"):
                raise _out_of_order("commit")
            number = await turn.commit(second.commit.answer)
            yield RunTurnResponse(committed=memory_pb2.Committed(turn=number))

    async def ListMemories(
        self, request: memory_pb2.ListMemoriesRequest, context: Context
    ) -> memory_pb2.ListMemoriesResponse:
        """List the caller's memories."""
        page_size = _count(request, "page_size", default=20, largest=1000)
        return await self._management.page(caller.get().user_id, page_size, request.page_token)

    async def GetMemory(
        self, request: memory_pb2.GetMemoryRequest, context: Context
    ) -> memory_pb2.GetMemoryResponse:
        """Return one memory."""
        memory = await self._management.get(caller.get().user_id, request.memory_id)
        return memory_pb2.GetMemoryResponse(memory=memory)

    async def ListTurns(
        self, request: memory_pb2.ListTurnsRequest, context: Context
    ) -> memory_pb2.ListTurnsResponse:
        """List the turns of a memory."""
        page_size = _count(request, "page_size", default=20, largest=1000)
        return await self._management.turns(
            caller.get().user_id, request.memory_id, page_size, request.page_token
        )

    async def SearchMemory(
        self, request: memory_pb2.SearchMemoryRequest, context: Context
    ) -> memory_pb2.SearchMemoryResponse:
        """Search the archived turns of a memory."""
        if not 1 <= len(request.query) <= _MAX_QUERY:
            raise invalid("query", f"query: must be 1 to {_MAX_QUERY} characters")
        top_k = _count(request, "top_k", default=8, largest=100)
        return await self._management.search(
            caller.get().user_id, request.memory_id, request.query, top_k
        )

    async def DeleteMemory(
        self, request: memory_pb2.DeleteMemoryRequest, context: Context
    ) -> memory_pb2.DeleteMemoryResponse:
        """Delete a memory."""
        await self._management.delete(caller.get().user_id, request.memory_id)
        return memory_pb2.DeleteMemoryResponse()

    async def GetProfile(
        self, request: memory_pb2.GetProfileRequest, context: Context
    ) -> memory_pb2.GetProfileResponse:
        """Return the facts about the caller."""
        return await self._management.profile(caller.get().user_id)

    async def UpdateFact(
        self, request: memory_pb2.UpdateFactRequest, context: Context
    ) -> memory_pb2.UpdateFactResponse:
        """Correct a fact about the caller."""
        fact = await self._management.correct_fact(caller.get().user_id, request.id, request.value)
        return memory_pb2.UpdateFactResponse(fact=fact)

    async def DeleteFact(
        self, request: memory_pb2.DeleteFactRequest, context: Context
    ) -> memory_pb2.DeleteFactResponse:
        """Delete a fact about the caller."""
        await self._management.delete_fact(caller.get().user_id, request.id)
        return memory_pb2.DeleteFactResponse()

    async def DeleteProfile(
        self, request: memory_pb2.DeleteProfileRequest, context: Context
    ) -> memory_pb2.DeleteProfileResponse:
        """Delete the facts about the caller."""
        await self._management.delete_profile(caller.get().user_id)
        return memory_pb2.DeleteProfileResponse()


def _check_begin(begin: BeginTurn) -> None:
    if not begin.memory_id and not begin.personal_memory:
        raise invalid("memory_id", "memory_id: is required unless personal_memory is true")
    if begin.memory_id and not is_memory_id(begin.memory_id):
        raise invalid("memory_id", f"memory_id: must be 1 to {MAX_NAME} printable characters")
    for field in ("history_window", "summary_window"):
        if begin.HasField(field) and getattr(begin, field) < SMALLEST_WINDOW:
            path = f"memory_config.{field}"
            raise invalid(path, f"{path}: must be at least {SMALLEST_WINDOW}")


def _count(request: Any, field: str, *, default: int, largest: int) -> int:
    count: int = getattr(request, field) if request.HasField(field) else default
    if not 1 <= count <= largest:
        raise invalid(field, f"{field}: must be 1 to {largest}")
    return count


def _out_of_order(expected: str) -> GatewayError:
    return invalid(expected, f"{expected}: must be the next message")
