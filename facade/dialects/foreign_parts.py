"""Parts of an answer that another dialect has and the caller's lacks, by name. Pure.

A provider of another dialect may answer with blocks and fields that are carried as `Opaque`.
Gemini's parts have a place in messages. Writers leave out all others, and the response names them:
in `x-gateway-dropped` if they are known before its head is sent, or else in a comment at the end of
the stream. Fields around the content, such as fingerprints, are left out without being named.
"""

from collections.abc import Iterable, Iterator, Sequence

import orjson

from facade.dialects.google_code import read_part
from gateway.conversation.v1 import conversation_pb2 as pb
from gateway.conversation.v1.conversation_pb2 import Block, Dialect, Media, Opaque
from gateway.inference.v1.inference_pb2 import Choice, Event
from services.common.messages.notes import note_on_unknown_parts

_PREFIX = "answer."
_MEDIA = "MEDIA_KIND_"
# Dialects of opaque blocks that a dialect's writer shows beside its own.
_SHOWN = {pb.DIALECT_ANTHROPIC: pb.DIALECT_GEMINI}
# Fields of deltas of opaque blocks, which are named by their start.
_OF_BLOCKS = frozenset({"type", "index", "partial_json", "text", "thinking"})
_CITED = "citations_delta"
# Fields of thinking, and of its proof, which has a place in the signatures of all dialects.
_OF_THINKING = frozenset({"reasoning_details", "extra_content"})
# Values that say what is so without their field.
_EMPTY: Sequence[object] = (None, "", [], {})
_DEFAULTS = {"caller": {"type": "direct"}}


def foreign_parts(choices: Iterable[Choice], dialect: Dialect.ValueType) -> Iterator[str]:
    """Yield the names of the parts of a whole answer that a dialect lacks."""
    for choice in choices:
        for block in choice.blocks:
            yield from _of_block(block, dialect)
        if choice.HasField("extra") and choice.extra.dialect != dialect:
            yield from _fields(choice.extra)


def foreign_parts_of_events(events: Iterable[Event], dialect: Dialect.ValueType) -> Iterator[str]:
    """Yield the names of the parts of some events that a dialect lacks."""
    for event in events:
        kind = event.WhichOneof("kind")
        if kind == "block_start":
            if event.block_start.WhichOneof("kind") == "text" and not event.block_start.HasField(
                "extra"
            ):
                continue  # the fast path of nearly all blocks
            yield from _of_block(event.block_start, dialect)
        elif kind == "opaque" and event.opaque.dialect != dialect:
            yield from _of_delta(event.opaque)
        elif kind == "extra_fields":
            message = event.extra_fields.message
            if message.json and message.dialect != dialect:
                yield from _fields(message)


def note_on(blocks: Iterable[Block], dialect: Dialect.ValueType) -> str:
    """Return a text in place of an answer of parts that a dialect lacks; "" without any."""
    named = (name for block in blocks for name in _of_block(block, dialect))
    return note_on_unknown_parts({name.removeprefix(_PREFIX) for name in named})


def _of_block(block: Block, dialect: Dialect.ValueType) -> Iterator[str]:
    if block.HasField("opaque"):
        is_program = dialect == pb.DIALECT_RESPONSES and read_part(block.opaque) is not None
        if not is_program and block.opaque.dialect not in (dialect, _SHOWN.get(dialect)):
            fields = orjson.loads(block.opaque.json)
            kind = fields.get("type")
            # Gemini's parts have no type.
            yield _PREFIX + (kind if isinstance(kind, str) else next(iter(fields), "part"))
    elif block.HasField("media"):
        if dialect == pb.DIALECT_RESPONSES and not _is_picture(block.media):
            yield _PREFIX + pb.MediaKind.Name(block.media.kind).removeprefix(_MEDIA).lower()
    elif block.HasField("extra") and block.extra.dialect != dialect:
        yield from _fields(block.extra)


def _is_picture(media: Media) -> bool:
    """Return whether a medium has an item in responses."""
    return media.kind == pb.MEDIA_KIND_IMAGE and bool(media.data)


def _fields(extra: Opaque) -> Iterator[str]:
    for name, value in orjson.loads(extra.json or b"{}").items():
        if name not in _OF_THINKING and value not in _EMPTY and value != _DEFAULTS.get(name):
            yield _PREFIX + name


def _of_delta(delta: Opaque) -> Iterator[str]:
    fields = orjson.loads(delta.json)
    if fields.get("type") == _CITED:
        yield f"{_PREFIX}citations"
    else:
        yield from (_PREFIX + name for name in fields.keys() - _OF_BLOCKS - _OF_THINKING)
