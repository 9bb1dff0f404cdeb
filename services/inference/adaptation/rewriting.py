"""Replace the media blocks of a conversation. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from gateway.conversation.v1.conversation_pb2 import Block, Message
from services.inference.media import MediaRef, media_blocks

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

# Replacement blocks, by the index of the medium among all media of the conversation.
Replacements = Mapping[int, Sequence[Block]]


def replace_media(messages: Iterable[Message], replacements: Replacements) -> None:
    """Replace media by other blocks, in tool results too."""
    place = 0
    for message in messages:
        place = _replace(message.blocks, place, replacements)


def found_after(
    messages: Iterable[Message], before: Sequence[MediaRef], replacements: Replacements
) -> list[MediaRef]:
    """Return the media of a rewritten conversation, with the paths of the original media."""
    sources: list[MediaRef] = []
    for place, media_ref in enumerate(before):
        put = replacements.get(place)
        count = 1 if put is None else sum(block.HasField("media") for block in put)
        sources += [media_ref] * count
    return [
        MediaRef(source.path, block, source.is_remembered)
        for source, block in zip(sources, media_blocks(messages), strict=True)
    ]


def _replace(
    blocks: "RepeatedCompositeFieldContainer[Block]", place: int, replacements: Replacements
) -> int:
    """Replace the media of one list of blocks; return the index of the next medium."""
    changed: list[Block] | None = None
    for index, block in enumerate(blocks):
        kind = block.WhichOneof("kind")
        put: Sequence[Block] | None = None
        if kind == "media":
            put = replacements.get(place)
            place += 1
        elif kind == "tool_result":
            place = _replace(block.tool_result.blocks, place, replacements)
        if put is not None and changed is None:
            changed = list(blocks[:index])
        if changed is not None:
            changed += [block] if put is None else put
    if changed is not None:
        del blocks[:]
        # Not in one call: in a thread, that would hold the GIL while all pages are copied.
        for block in changed:
            blocks.append(block)
    return place
