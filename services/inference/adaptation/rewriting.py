"""Blocks of a conversation replaced by others. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

from gateway.conversation.v1.conversation_pb2 import Block, Message
from services.inference.media import MediaRef, media_blocks

# By the place of a medium among all of a conversation, in reading order from 0: what goes there.
Replacements = Mapping[int, Sequence[Block]]


def replace_media(messages: Iterable[Message], replacements: Replacements) -> None:
    """Put other blocks in the places of media, those in results of tools too."""
    place = 0
    for message in messages:
        place = _replace(message.blocks, place, replacements)


def found_after(
    messages: Iterable[Message], before: Sequence[MediaRef], replacements: Replacements
) -> list[MediaRef]:
    """Return the media of a changed conversation, with the paths of those that they come from."""
    sources: list[MediaRef] = []
    for place, found in enumerate(before):
        put = replacements.get(place)
        count = 1 if put is None else sum(block.HasField("media") for block in put)
        sources += [found] * count
    return [
        MediaRef(source.path, block, source.is_remembered)
        for source, block in zip(sources, media_blocks(messages), strict=True)
    ]


def _replace(
    blocks: "RepeatedCompositeFieldContainer[Block]", place: int, replacements: Replacements
) -> int:
    """Replace the media of one list; return the place of the medium after it."""
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
        # Not all in one call: in a thread it would keep others waiting while it copies all pages.
        for block in changed:
            blocks.append(block)
    return place
