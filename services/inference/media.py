"""The media of a request, each with its path."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gateway.conversation.v1.conversation_pb2 import Block, Message
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.inference.paths import block_path


@dataclass(frozen=True, slots=True)
class MediaRef:
    """A medium of a request.

    Attributes:
        path: of its block in the request.
        block: the block that holds it; what is set there is set in the request.
        is_remembered: whether it comes from the server's memory alone; it fails no request.
    """

    path: str
    block: Block
    is_remembered: bool = False


def find_media(request: GenerateRequest) -> list[MediaRef]:
    """Return every medium of a request, those in results of tools too."""
    return list(_find(request))


def media_blocks(messages: Iterable[Message]) -> Iterator[Block]:
    """Return the block of every medium, those in results of tools too, in reading order."""
    for message in messages:
        for block in message.blocks:
            kind = block.WhichOneof("kind")
            if kind == "media":
                yield block
            elif kind == "tool_result":
                for part in block.tool_result.blocks:
                    if part.WhichOneof("kind") == "media":
                        yield part


def _find(request: GenerateRequest) -> Iterator[MediaRef]:
    for index, message in enumerate(request.messages):
        for place, block in enumerate(message.blocks):
            kind = block.WhichOneof("kind")
            if kind == "media":
                yield MediaRef(block_path(index, place), block)
            elif kind == "tool_result":
                for inner, part in enumerate(block.tool_result.blocks):
                    if part.WhichOneof("kind") == "media":
                        yield MediaRef(block_path(index, place, inner), part)
