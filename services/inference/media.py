"""The media of a request and their paths."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gateway.conversation.v1.conversation_pb2 import Block, Message
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import GatewayError
from services.inference.plans.plan import Plan
from services.inference.request.paths import block_path


class AdaptationError(GatewayError):
    """Error raised for a medium that cannot be converted for a model.

    The next step of the plan may read the medium without conversion.
    """


@dataclass(frozen=True, slots=True)
class MediaRef:
    """A medium of a request.

    Attributes:
        path: the path of its block in the request.
        block: the block in the request; changes apply to the request.
        is_remembered: whether it comes from memory; such media never fail a request.
    """

    path: str
    block: Block
    is_remembered: bool = False


def find_media(request: GenerateRequest) -> list[MediaRef]:
    """Return all media of a request, including those in tool results."""
    return list(_find(request))


def media_blocks(messages: Iterable[Message]) -> Iterator[Block]:
    """Yield the blocks of all media in reading order, including those in tool results."""
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


def overriding_media(request: GenerateRequest, plan: Plan) -> list[MediaRef]:
    """Return the media in the conversations that override the request's in single steps."""
    media: list[MediaRef] = []
    for step in plan.steps:
        if step.parameters is not None and step.parameters.messages:
            step.parameters.dialect = request.dialect
            media += [
                MediaRef(f"{step.path}.parameters.{one.path}", one.block)
                for one in find_media(step.parameters)
            ]
    return media
