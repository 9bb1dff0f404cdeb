"""Where a request's media are: found in one pass, named as the caller would."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Dialect, Message
from gateway.inference.v1.inference_pb2 import GenerateRequest


@dataclass(frozen=True, slots=True)
class Found:
    """A medium of a request.

    Attributes:
        path: where it is in the caller's own JSON, as far as that is known: messages
            that were empty, and so dropped on the way in, are not counted.
        block: the block that holds it; what is set there is set in the request.
        is_remembered: whether it comes from the server's memory alone; it fails no request.
    """

    path: str
    block: Block
    is_remembered: bool = False


def find_media(request: GenerateRequest) -> list[Found]:
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


def _find(request: GenerateRequest) -> Iterator[Found]:
    for index, message in enumerate(request.messages):
        for place, block in enumerate(message.blocks):
            kind = block.WhichOneof("kind")
            if kind == "media":
                yield Found(block_path(request, index, place), block)
            elif kind == "tool_result":
                for inner, part in enumerate(block.tool_result.blocks):
                    if part.WhichOneof("kind") == "media":
                        yield Found(block_path(request, index, place, inner), part)


def block_path(request: GenerateRequest, index: int, place: int, inner: int | None = None) -> str:
    """Return the path of a block in the words of the request's dialect.

    Anthropic's `system` stands beside `messages`, so a system prompt at the head is
    not counted there; OpenAI's tool message is what holds its one result.
    """
    if request.dialect == Dialect.DIALECT_UNSPECIFIED:
        path = f"messages[{index}].blocks[{place}]"
        return path if inner is None else f"{path}.tool_result.blocks[{inner}]"
    if request.dialect == Dialect.DIALECT_OPENAI:
        return f"messages[{index}].content[{place if inner is None else inner}]"
    if request.messages[0].role == conversation_pb2.ROLE_SYSTEM:
        index -= 1
    path = f"messages[{index}].content[{place}]"
    return path if inner is None else f"{path}.content[{inner}]"
