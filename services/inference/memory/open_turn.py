"""Taking a turn: what a request tells Memory, and what comes of the answer."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Message, Opaque
from gateway.inference.v1.inference_pb2 import GenerateRequest, GenerateResponse, Multimodal
from gateway.memory.v1.memory_pb2 import OpenTurn
from services.common.errors import GatewayError
from services.inference.adaptation.rules import adapts
from services.inference.files import Files, place_files
from services.inference.media import Found
from services.inference.memory.conversation import Conversation
from services.inference.memory.split import split_request
from services.inference.memory.turn_client import MemoryTurn, TurnOpener
from services.inference.offload import offload
from services.inference.providers.base import Target


@dataclass(frozen=True, slots=True)
class OpenedTurn:
    """A turn that a request takes.

    Attributes:
        turn: is held until it is ended.
        conversation: what was sent and what is remembered.
        writes: whether the answer is to be remembered.
    """

    turn: MemoryTurn
    conversation: Conversation
    writes: bool

    @asynccontextmanager
    async def ended_by_failure(self) -> AsyncIterator[None]:
        """End the turn where the block fails; the failure goes on once Memory has ended it too.

        The caller who is told of the failure can then begin another memory in its place. A block
        that is cancelled does not wait for Memory.
        """
        try:
            yield
        except Exception:
            await self.turn.close()
            raise
        except BaseException:
            self.turn.drop()
            raise

    async def remember(self, response: GenerateResponse) -> None:
        """End the turn with an answer, the first where there are several.

        Raises:
            GatewayError: conflict or unavailable; nothing was remembered.
        """
        if self.writes:
            choice = response.choices[0]
            answer = Message(role=conversation_pb2.ROLE_ASSISTANT, blocks=choice.blocks)
            if not answer.blocks and (transcript := _transcript(choice.extra)):
                # A recording is kept at its provider, and not for long.
                answer.blocks.add(text=transcript)
            await self.turn.commit(answer)
        else:
            await self.turn.close()


async def open_turn(
    request: GenerateRequest, memories: TurnOpener, inject_tokens: int, *, reads_only: bool = False
) -> OpenedTurn:
    """Take the turn of a request, whose messages are taken out of it.

    Args:
        request: one in which the memory takes part.
        memories: where turns are taken.
        inject_tokens: see `Conversation`.
        reads_only: whether the memory stays as it is, whatever the request says.

    Raises:
        GatewayError: invalid, or what Memory answers.
    """
    apart = await offload(split_request, request)
    if reads_only:
        apart.opening.mode = OpenTurn.MODE_READ_ONLY
    writes = apart.opening.mode != OpenTurn.MODE_READ_ONLY
    turn = await memories.take(apart.opening)
    try:
        conversation = await offload(
            Conversation, apart, turn.context, request.memory, inject_tokens
        )
    except BaseException:
        turn.drop()
        raise
    return OpenedTurn(turn, conversation, writes)


@asynccontextmanager
async def opened_turn(
    request: GenerateRequest, memories: TurnOpener, inject_tokens: int, *, reads_only: bool = False
) -> AsyncIterator[OpenedTurn]:
    """Take a turn for the time of a block; one that was not ended there changes nothing."""
    taken = await open_turn(request, memories, inject_tokens, reads_only=reads_only)
    async with taken.ended_by_failure():
        yield taken
    taken.turn.drop()


async def place_remembered_files(
    named: Mapping[str, list[Found]],
    files: Files,
    targets: Iterable[Target],
    multimodal: Multimodal,
    *,
    at_most: int,
    keep_foreign: bool,
) -> None:
    """Put the bytes of remembered files in their places, as far as they are still there.

    A file that is gone, too large or cannot be had now fails nothing.

    Args:
        named: places by the file's id; the first ones go first while there is room.
        files: where files are read.
        targets: the models that may be asked; what none reads, and is not converted for it, is
            left alone.
        multimodal: how the request wants media converted.
        at_most: bytes that all of them together may have.
        keep_foreign: whether ids that are not the gateway's are left as they are.
    """
    left = at_most
    for places in named.values():
        kind = places[0].block.media.kind
        # Text that a document holds is read by every model.
        is_read = kind == conversation_pb2.MEDIA_KIND_DOCUMENT or adapts(multimodal, kind)
        if not is_read and not any(target.reads(kind) for target in targets):
            continue
        try:
            await place_files(places, files, at_most=left, keep_foreign=keep_foreign)
            left -= sum(len(one.block.media.data) for one in places)
        except GatewayError:
            for one in places:
                one.block.media.sha256 = b""


def _transcript(extra: Opaque) -> str:
    """Return what is said in the recording that an answer is, "" where it is none."""
    match orjson.loads(extra.json) if extra.json else None:
        case {"audio": {"transcript": str(transcript)}}:
            return transcript
    return ""
