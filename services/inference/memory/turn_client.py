"""Client of MemoryService: one RunTurn call, open for the duration of a request."""

import asyncio
import contextlib
from typing import Any, Protocol

import grpc

from gateway.conversation.v1.conversation_pb2 import Message
from gateway.memory.v1 import memory_pb2_grpc
from gateway.memory.v1.memory_pb2 import (
    BeginTurn,
    CommitTurn,
    RunTurnRequest,
    RunTurnResponse,
    TurnContext,
)
from services.common.errors import from_rpc_error, internal
from services.common.grpc.authentication import call_metadata, caller_key
from services.common.grpc.terminal_status import TerminalStatus
from services.common.process import logs

# Seconds to wait for Memory to release the lock after a turn; a commit does not depend on it.
_CLOSING_S = 2.0


class MemoryTurn(Protocol):
    """An open turn.

    Attributes:
        context: the stored context of the turn; may be modified.
    """

    context: TurnContext

    async def commit(self, answer: Message) -> None:
        """Commit the turn with its answer, and end it.

        Raises:
            GatewayError: conflict or unavailable; nothing was committed.
        """

    async def close(self) -> None:
        """End the turn; without a commit the memory stays unchanged."""

    def drop(self) -> None:
        """End the turn at once, without waiting."""


class TurnFactory(Protocol):
    """Begins turns for the caller of the current task."""

    async def begin(self, begin: BeginTurn) -> MemoryTurn:
        """Begin a turn, once the memory is free.

        Raises:
            GatewayError: memory_busy, memory_quota_exceeded, memory_not_synchronized.
        """
        ...


class TurnClient:
    """Begins turns of MemoryService, with the caller's own key."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = memory_pb2_grpc.MemoryServiceStub(channel)

    async def begin(self, begin: BeginTurn) -> "TurnCall":
        """Begin a turn; see `TurnFactory`."""
        call = self._stub.RunTurn(metadata=call_metadata(caller_key.get(), logs.request_id.get()))
        turn = TurnCall(call)
        try:
            answer = await turn.ask(RunTurnRequest(begin=begin))
        except BaseException:
            turn.drop()
            raise
        turn.context = answer.context
        return turn


class TurnCall:
    """A RunTurn call; see `MemoryTurn`."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._ending = TerminalStatus(call)
        self.context = TurnContext()

    async def ask(self, step: RunTurnRequest) -> RunTurnResponse:
        """Send a step and return the response.

        Raises:
            GatewayError: the error of the call.
        """
        try:
            # Writing to a call that has ended fails without its status, which `read` raises.
            with contextlib.suppress(asyncio.InvalidStateError):
                await self._call.write(step)
            answer: RunTurnResponse | Any = await self._call.read()
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(self._ending.refusal or error) from None
        if answer is grpc.aio.EOF:
            raise internal()
        return answer

    async def commit(self, answer: Message) -> None:
        """Commit the turn; see `MemoryTurn`."""
        await self.ask(RunTurnRequest(commit=CommitTurn(answer=answer)))
        await self.close()

    async def close(self) -> None:
        """End the call, and wait briefly for Memory to release the lock; see `MemoryTurn`."""
        if self._call.done():
            return
        with contextlib.suppress(TimeoutError, grpc.aio.AioRpcError):
            async with asyncio.timeout(_CLOSING_S):
                await self._call.done_writing()
                await self._call.read()
        self.drop()

    def drop(self) -> None:
        """Cancel the call; see `MemoryTurn`."""
        self._call.cancel()
