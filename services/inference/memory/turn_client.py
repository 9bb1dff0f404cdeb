"""Memory, as the engine asks it: one call that is held for as long as a request takes."""

import asyncio
import contextlib
from typing import Any, Protocol

import grpc

from gateway.conversation.v1.conversation_pb2 import Message
from gateway.memory.v1 import memory_pb2_grpc
from gateway.memory.v1.memory_pb2 import (
    CommitTurn,
    OpenTurn,
    TakeTurnRequest,
    TakeTurnResponse,
    TurnContext,
)
from services.common import logs
from services.common.authentication import caller_key
from services.common.channels import call_metadata
from services.common.endings import Ending
from services.common.errors import from_rpc_error, internal

# The memory is free once Memory has ended the call; what is committed is so without it.
_CLOSING_S = 2.0


class MemoryTurn(Protocol):
    """A turn that is being taken.

    Attributes:
        context: what is remembered; whoever takes the turn may change it.
    """

    context: TurnContext

    async def commit(self, answer: Message) -> None:
        """Add what was sent and its answer to the memory, and end the turn.

        Raises:
            GatewayError: conflict or unavailable; nothing was added.
        """

    async def close(self) -> None:
        """End the turn, the memory as it was unless there was a commit."""

    def drop(self) -> None:
        """End the turn at once, in a moment where nothing can be waited for."""


class TurnOpener(Protocol):
    """Where turns are taken, for the caller whom the current task serves."""

    async def take(self, opening: OpenTurn) -> MemoryTurn:
        """Begin a turn, when it is the caller's.

        Raises:
            GatewayError: memory_busy, memory_quota_exceeded, memory_not_synchronized.
        """
        ...


class TurnClient:
    """Takes turns of the MemoryService, with the caller's own key."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = memory_pb2_grpc.MemoryServiceStub(channel)

    async def take(self, opening: OpenTurn) -> "HeldTurn":
        """Begin a turn; see `Memories`."""
        call = self._stub.TakeTurn(metadata=call_metadata(caller_key.get(), logs.request_id.get()))
        turn = HeldTurn(call)
        try:
            answer = await turn.ask(TakeTurnRequest(open=opening))
        except BaseException:
            turn.drop()
            raise
        turn.context = answer.context
        return turn


class HeldTurn:
    """A TakeTurn call; see `Turn`."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._ending = Ending(call)
        self.context = TurnContext()

    async def ask(self, step: TakeTurnRequest) -> TakeTurnResponse:
        """Send a step and give what it is answered with.

        Raises:
            GatewayError: what Memory ended the call with.
        """
        try:
            # A call that has ended takes nothing more, and tells why where it is read.
            with contextlib.suppress(asyncio.InvalidStateError):
                await self._call.write(step)
            answer: TakeTurnResponse | Any = await self._call.read()
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(self._ending.refusal or error) from None
        if answer is grpc.aio.EOF:
            raise internal()
        return answer

    async def commit(self, answer: Message) -> None:
        """Add what was sent and its answer; see `Turn`."""
        await self.ask(TakeTurnRequest(commit=CommitTurn(answer=answer)))
        await self.close()

    async def close(self) -> None:
        """End the call, and wait a little for Memory to set the memory free; see `Turn`."""
        if self._call.done():
            return
        with contextlib.suppress(TimeoutError, grpc.aio.AioRpcError):
            async with asyncio.timeout(_CLOSING_S):
                await self._call.done_writing()
                await self._call.read()
        self.drop()

    def drop(self) -> None:
        """Cancel the call; see `Turn`."""
        self._call.cancel()
