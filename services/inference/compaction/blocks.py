"""Compactions as the dialects that have them write them. Pure."""

from collections.abc import Iterator

import orjson

from gateway.conversation.v1.conversation_pb2 import (
    DIALECT_ANTHROPIC,
    DIALECT_RESPONSES,
    FINISH_REASON_END_TURN,
    Block,
    Dialect,
    Opaque,
)
from gateway.inference.v1.inference_pb2 import BlockStop, Event, Finish
from services.common.messages.sealed_summary import SUMMARY


def compaction_block(dialect: Dialect.ValueType, item_id: str, summary: str, sealed: str) -> Block:
    """Return the block of an answer that has a summary.

    Args:
        dialect: the dialect of the caller.
        item_id: id of the item.
        summary: the summary.
        sealed: the summary as only the gateway reads it.
    """
    if dialect == DIALECT_RESPONSES:
        return _opaque(dialect, id=item_id, type="compaction", encrypted_content=sealed)
    if dialect == DIALECT_ANTHROPIC:
        return _opaque(dialect, type="compaction", content=summary, encrypted_content=sealed)
    return Block(text=f"{SUMMARY}\n{summary}")


def message_block(item_id: str, text: str) -> Block:
    """Return a message of the user as an item of OpenAI's responses."""
    content = [{"type": "input_text", "text": text}]
    return _opaque(
        DIALECT_RESPONSES,
        id=item_id,
        type="message",
        status="completed",
        role="user",
        content=content,
    )


def events_of(block: Block) -> Iterator[Event]:
    """Yield the events of an answer's first block."""
    delta: Opaque | None = None
    if block.opaque.dialect == DIALECT_ANTHROPIC:
        # Anthropic's clients read the summary from a delta.
        fields = orjson.loads(block.opaque.json)
        sent = {name: fields[name] for name in ("content", "encrypted_content")}
        delta = _opaque(DIALECT_ANTHROPIC, type="compaction_delta", **sent).opaque
        block = _opaque(DIALECT_ANTHROPIC, **{**fields, **dict.fromkeys(sent)})
    yield Event(block_start=block)
    if delta is not None:
        yield Event(opaque=delta)
    yield Event(block_stop=BlockStop())


def finish_of(dialect: Dialect.ValueType) -> Finish:
    """Return the end of an answer that has nothing but a compaction."""
    finish = Finish(reason=FINISH_REASON_END_TURN)
    if dialect == DIALECT_ANTHROPIC:
        finish.extra.CopyFrom(_opaque(dialect, stop_reason="compaction").opaque)
    return finish


def _opaque(dialect: Dialect.ValueType, **fields: object) -> Block:
    return Block(opaque=Opaque(dialect=dialect, json=orjson.dumps(fields)))
