"""Turns: how messages are divided into turns, stored, and sent to models. Pure.

A turn is one or more consecutive messages of the user and everything up to the next one that is not
a tool result; messages before the first belong to the first turn. Turns depend on the sequence of
messages alone, not on the requests that sent them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Message, ToolResult
from services.memory.storage.messages import (
    continues_message,
    has_many_messages,
    has_results,
    is_ignored,
    is_user_turn_start,
    media_placeholder,
    merge_messages,
    to_storable,
)

_USER = conversation_pb2.ROLE_USER
_ASSISTANT = conversation_pb2.ROLE_ASSISTANT


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A turn of a transcript.

    Attributes:
        number: its place, from 1, without gaps.
        messages: at least one, in normal form.
        created_at_ms: Unix milliseconds when its first message was committed.
        open: whether tool results are pending; only the last turn can be open.
        first_message: index of its first message in the whole transcript.
    """

    number: int
    messages: tuple[Message, ...]
    created_at_ms: int
    open: bool
    first_message: int


def have_many_messages(turns: Iterable[StoredTurn]) -> bool:
    """Return whether work on each message of turns takes long."""
    return has_many_messages([message for turn in turns for message in turn.messages])


def pending_call_ids(messages: Sequence[Message]) -> frozenset[str]:
    """Return the ids of the tool calls at the end of messages that have no result yet.

    Only calls of the last assistant message can be pending, until the user starts another turn.
    """
    answered: set[str] = set()
    for message in reversed(messages):
        if message.role == _ASSISTANT:
            calls = (b.tool_use.id for b in message.blocks if b.HasField("tool_use"))
            return frozenset(calls) - answered
        if is_user_turn_start(message):
            break
        answered |= _results([message])
    return frozenset()


def extend_turns(
    before: StoredTurn | None, keep: int, messages: Sequence[Message], now_ms: int
) -> list[StoredTurn]:
    """Append messages to the part of a transcript that stays, and return the turns to write.

    Args:
        before: the stored turn that contains the last message that stays; None if none stays.
        keep: number of messages of the transcript that stay.
        messages: the messages that follow, in normal form.
        now_ms: creation time of new turns, Unix milliseconds.

    Returns:
        The turns to write, in order; the last is the present turn. The first is the turn `before`
        if that is cut, continued, or closed with calls pending. Empty only if there is no message
        at all.
    """
    number, first, created_at_ms = 1, 0, now_ms
    collected: list[Message] = []
    if before is not None:
        number, first, created_at_ms = before.number, before.first_message, before.created_at_ms
        collected.extend(before.messages[: keep - first])
    has_user = any(map(is_user_turn_start, collected))
    turns: list[StoredTurn] = []
    for message in messages:
        starts = is_user_turn_start(message)
        if starts and has_user and not is_user_turn_start(collected[-1]):
            turns.append(StoredTurn(number, tuple(collected), created_at_ms, False, first))
            number, first, created_at_ms = number + 1, first + len(collected), now_ms
            collected.clear()
        if collected and continues_message(collected[-1], message):
            collected[-1] = merge_messages([collected[-1], message])
        else:
            collected.append(message)
            has_user = has_user or starts
    if collected:
        is_open = bool(pending_call_ids(collected))
        turns.append(StoredTurn(number, tuple(collected), created_at_ms, is_open, first))
    if len(turns) > 1 and turns[0] == before:
        del turns[0]
    return turns


def append_answer(messages: Sequence[Message], answer: Message) -> tuple[Message, ...]:
    """Append the model's answer to messages; a prefill and its continuation become one message.

    An answer with nothing to store adds nothing.
    """
    if all(is_ignored(block) for block in answer.blocks):
        return tuple(messages)
    if messages and messages[-1].role == _ASSISTANT:
        return (*messages[:-1], merge_messages([messages[-1], answer]))
    return (*messages, answer)


def complete_turns(turns: Sequence[StoredTurn], answer: Message) -> list[StoredTurn]:
    """Return the turns of `extend_turns` in stored form, with the answer added to the last."""
    stored = [replace(turn, messages=_storable(turn.messages)) for turn in turns[:-1]]
    messages = _storable(append_answer(turns[-1].messages, answer))
    stored.append(replace(turns[-1], messages=messages, open=bool(pending_call_ids(messages))))
    return stored


def _storable(messages: Iterable[Message]) -> tuple[Message, ...]:
    return tuple([kept for message in messages if (kept := to_storable(message)) is not None])


def to_model_messages(messages: Iterable[Message]) -> list[Message]:
    """Return messages in a form that every provider accepts.

    A tool call is followed by its result; a call without a result is left out, and a result
    without a call becomes text. Ignored blocks, and messages that contain nothing else, are left
    out. Media are unchanged.
    """
    shown: list[Message] = []
    waiting: list[Message] = []
    for role, run in groupby(messages, key=attrgetter("role")):
        if role == _ASSISTANT:
            waiting = list(run)
        else:
            _append_exchange(waiting, list(run), shown)
            waiting = []
    _append_exchange(waiting, [], shown)
    return shown


def _append_exchange(
    spoken: Sequence[Message], replies: Sequence[Message], into: list[Message]
) -> None:
    """Append an assistant's messages, the results of their calls, and the user's other blocks."""
    results = _results(replies)
    paired: set[str] = set()
    for place, message in enumerate(spoken):
        blocks: list[Block] = []
        for block in message.blocks:
            if block.HasField("tool_use"):
                call_id = block.tool_use.id
                # Only the last message's calls can have their results right after them.
                if place < len(spoken) - 1 or call_id not in results or call_id in paired:
                    continue
                paired.add(call_id)
            blocks.append(block)
        _append_shown(message, blocks, into)
    other_replies: list[Message] = []
    for message in replies:
        blocks = []
        for block in message.blocks:
            result = block.tool_result
            if not block.HasField("tool_result"):
                blocks.append(block)
            elif result.tool_use_id in paired:
                paired.discard(result.tool_use_id)
                into.append(Message(role=_USER, blocks=[block]))
            else:
                blocks += _as_text(result)
        _append_shown(message, blocks, other_replies)
    into += other_replies


def _results(messages: Iterable[Message]) -> set[str]:
    return {
        block.tool_result.tool_use_id
        for message in messages
        for block in message.blocks
        if block.HasField("tool_result")
    }


def _as_text(result: ToolResult) -> list[Block]:
    return [Block(text="[Result of a tool]"), *result.blocks]


def _append_shown(message: Message, blocks: Sequence[Block], into: list[Message]) -> None:
    blocks = [block for block in blocks if not is_ignored(block)]
    if not blocks:
        return
    if len(blocks) < len(message.blocks) or has_results(message):
        extra = message.extra if message.HasField("extra") else None
        message = Message(role=message.role, name=message.name, extra=extra, blocks=blocks)
    into.append(message)


def conversation_text(messages: Iterable[Message]) -> str:
    """Return messages as text, a line for each message of user and assistant.

    Media are described and tool calls named; tool results are left out.
    """
    lines: list[str] = []
    for message in messages:
        parts = [part for block in message.blocks if (part := _block_text(block))]
        if parts:
            speaker = "User" if message.role == _USER else "Assistant"
            lines.append(f"{speaker}: {' '.join(parts)}")
    return "\n".join(lines)


def _block_text(block: Block) -> str:
    match block.WhichOneof("kind"):
        case "text":
            return block.text.strip()
        case "refusal":
            return block.refusal.strip()
        case "media":
            return media_placeholder(block.media).text
        case "tool_use":
            return f"[used {block.tool_use.name}]"
        case _:
            return ""


def user_text(messages: Iterable[Message]) -> str:
    """Return the text that the user wrote, a line for each block."""
    texts = (
        block.text.strip()
        for message in messages
        if message.role == _USER
        for block in message.blocks
    )
    return "\n".join(filter(None, texts))
