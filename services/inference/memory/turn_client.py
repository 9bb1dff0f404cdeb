"""The turn of a request in Memory, and its commit: a RunTurn call, open while it is answered."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import grpc
import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Message, Opaque
from gateway.inference.v1.inference_pb2 import GenerateRequest, GenerateResponse, Multimodal
from gateway.memory.v1 import memory_pb2_grpc
from gateway.memory.v1.memory_pb2 import (
    BeginTurn,
    CommitTurn,
    RunTurnRequest,
    RunTurnResponse,
    TurnContext,
)
from services.common.errors import GatewayError, from_rpc_error, internal
from services.common.grpc.authentication import call_metadata, caller_key
from services.common.grpc.terminal_status import TerminalStatus
from services.common.process import logs
from services.common.process.byte_budget import Charge, is_over_budget
from services.inference.adaptation.rules import adapts
from services.inference.files import place_files
from services.inference.media import MediaRef
from services.inference.memory.conversation import Conversation
from services.inference.memory.split import split_request
from services.inference.offload import offload
from services.inference.providers.base import Target
from services.inference.stored_files import Files

# Seconds to wait for Memory to release the lock after a turn that is not committed.
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
        """Commit the turn; see `MemoryTurn`.

        The end of the call is not waited for, as the commit has released the lock.
        """
        await self.ask(RunTurnRequest(commit=CommitTurn(answer=answer)))
        await self._call.done_writing()

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


@dataclass(frozen=True, slots=True)
class RequestTurn:
    """The turn of a request.

    Attributes:
        turn: the turn in Memory, open until it is committed, closed or dropped.
        conversation: the sent and the stored conversation.
        writes: whether the answer is committed.
    """

    turn: MemoryTurn
    conversation: Conversation
    writes: bool

    @asynccontextmanager
    async def closing_on_failure(self) -> AsyncIterator[None]:
        """Close the turn if the block fails, before the error is raised.

        The caller can then use the memory as soon as it receives the error. A block that is
        cancelled does not wait for Memory.
        """
        try:
            yield
        except Exception:
            await self.turn.close()
            raise
        except BaseException:
            self.turn.drop()
            raise

    async def commit(self, response: GenerateResponse) -> None:
        """End the turn with the answer, of which the first choice is committed.

        Raises:
            GatewayError: conflict or unavailable; nothing was committed.
        """
        if self.writes:
            choice = response.choices[0]
            answer = Message(role=conversation_pb2.ROLE_ASSISTANT, blocks=choice.blocks)
            if not answer.blocks and (transcript := _transcript(choice.extra)):
                # The provider stores a recording itself, for a short time.
                answer.blocks.add(text=transcript)
            await self.turn.commit(answer)
        else:
            await self.turn.close()


async def begin_turn(
    request: GenerateRequest, memories: TurnFactory, inject_tokens: int, *, reads_only: bool = False
) -> RequestTurn:
    """Begin the turn of a request.

    Args:
        request: a request that uses memory; its messages are removed.
        memories: begins turns.
        inject_tokens: see `Conversation`.
        reads_only: whether nothing is committed, whatever the mode of the request.

    Raises:
        GatewayError: invalid, or the error of Memory.
    """
    split = await offload(split_request, request)
    if reads_only:
        split.begin.mode = BeginTurn.MODE_READ_ONLY
    writes = split.begin.mode != BeginTurn.MODE_READ_ONLY
    turn = await memories.begin(split.begin)
    try:
        conversation = await offload(
            Conversation, split, turn.context, request.memory, inject_tokens
        )
    except BaseException:
        turn.drop()
        raise
    return RequestTurn(turn, conversation, writes)


@asynccontextmanager
async def run_turn(
    request: GenerateRequest, memories: TurnFactory, inject_tokens: int, *, reads_only: bool = False
) -> AsyncIterator[RequestTurn]:
    """Context manager of an open turn, which the block commits or closes."""
    turn = await begin_turn(request, memories, inject_tokens, reads_only=reads_only)
    async with turn.closing_on_failure():
        yield turn


async def place_remembered_files(
    named: Mapping[str, list[MediaRef]],
    files: Files,
    charge: Charge,
    targets: Iterable[Target],
    multimodal: Multimodal,
    *,
    at_most: int,
    keep_foreign: bool,
) -> None:
    """Insert the bytes of stored files into the media that reference them.

    A medium whose file is deleted, too large or unavailable is left without a readable source.

    Args:
        named: media by file id, in the order in which they are read within `at_most`.
        files: reads files.
        charge: the bytes that the request holds; those of the files are added.
        targets: the models of the plan; media that no model reads and that are not converted
            are skipped.
        multimodal: the request's options for the conversion of media.
        at_most: maximum bytes of all files together.
        keep_foreign: whether ids of other services are kept.

    Raises:
        GatewayError: as `Charge.acquire`.
    """
    left = at_most
    for places in named.values():
        kind = places[0].block.media.kind
        # The text of a document is read by every model.
        is_read = kind == conversation_pb2.MEDIA_KIND_DOCUMENT or adapts(multimodal, kind)
        if not is_read and not any(target.reads(kind) for target in targets):
            continue
        try:
            await place_files(places, files, charge, at_most=left, keep_foreign=keep_foreign)
            left -= sum(len(one.block.media.data) for one in places)
        except GatewayError as error:
            if is_over_budget(error):
                raise
            for one in places:
                one.block.media.sha256 = b""


def _transcript(extra: Opaque) -> str:
    """Return the transcript of an audio answer, or ""."""
    match orjson.loads(extra.json) if extra.json else None:
        case {"audio": {"transcript": str(transcript)}}:
            return transcript
    return ""
