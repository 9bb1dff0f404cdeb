"""Joining: where what a client sends meets the transcript that is stored.

A client may send the whole conversation, its newest part, or its newest messages alone,
and says nothing of which it is. The messages themselves must tell: they are compared by
their keys, in time linear in both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Message
from services.memory.transcript.messages import has_results, message_key

# Messages in common from which on two transcripts are held for one and the same.
_CERTAIN = 2


@dataclass(frozen=True, slots=True)
class StoredTranscript:
    """What is stored, as far as joining needs to know it.

    Attributes:
        messages: how many there are.
        awaited: ids of the calls that the last turn is open for.
        keys: the keys of all messages, one after the other; may be left empty where
            `needs_keys` says so.
    """

    messages: int
    awaited: frozenset[str] = frozenset()
    keys: bytes = b""


@dataclass(frozen=True, slots=True)
class MergePoint:
    """How a transcript goes on.

    Attributes:
        keep: how many stored messages stay, from the first on. Fewer than there are means
            an edit or a new answer: the others are superseded.
        known: how many of the messages sent are stored already, from the first on; the
            stored ones are what counts. Those behind them are new.
    """

    keep: int
    known: int


def needs_keys(sent: Sequence[Message], messages: int, awaited: frozenset[str]) -> bool:
    """Return whether the keys of the stored messages are needed to join what was sent.

    Whoever sends the newest messages alone never needs them.

    Args:
        sent: at least one message, in normal form.
        messages: how many messages are stored.
        awaited: ids of the calls that the last turn is open for.
    """
    if not messages or _answers_pending_calls(sent, awaited):
        return False
    return not _is_newest_only(sent) or len(sent) > messages


def find_merge_point(sent: Sequence[Message], transcript: StoredTranscript) -> MergePoint:
    """Find out which part of what was sent is stored already.

    Args:
        sent: at least one message, in normal form (see `messages.normalised`).
        transcript: what is stored, in normal form too.
    """
    return MergePoint(*_overlap(sent, transcript))


def _overlap(sent: Sequence[Message], transcript: StoredTranscript) -> tuple[int, int]:
    """Return how many stored messages stay, and how many of those sent are among them."""
    stored = transcript.messages
    nothing = (stored, 0)
    if not needs_keys(sent, stored, transcript.awaited):
        return nothing
    old = _to_integers(transcript.keys)
    new = _to_integers(b"".join([message_key(message) for message in sent]))
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    if _is_newest_only(sent):
        # A whole conversation looks like this too as long as every answer was empty.
        return (stored, stored) if same == stored else nothing
    if same >= _CERTAIN or same == stored:
        return same, same
    telling = next(place for place, message in enumerate(sent) if not _is_user_message(message))
    end, length = _longest_run(old, new)
    return (end, length) if length > telling else nothing


def _is_user_message(message: Message) -> bool:
    return message.role == conversation_pb2.ROLE_USER and not has_results(message)


def _is_newest_only(sent: Sequence[Message]) -> bool:
    return all(_is_user_message(message) for message in sent)


def _answers_pending_calls(sent: Sequence[Message], awaited: frozenset[str]) -> bool:
    """Return whether the results of tools at the beginning answer calls of the open turn."""
    if not awaited:
        return False
    return any(
        block.tool_result.tool_use_id in awaited
        for message in takewhile(has_results, sent)
        for block in message.blocks
    )


def _to_integers(keys: bytes) -> list[int]:
    # A key has the size of a machine's word, so lists of them compare fast.
    return memoryview(keys).cast("Q").tolist()


def _longest_run(old: Sequence[int], new: Sequence[int]) -> tuple[int, int]:
    """Find the longest beginning of `new` that is somewhere in `old`, the latest of several.

    This is the search of Knuth, Morris and Pratt, which never goes back in `old`: at each
    place it knows how much of `new` ends there.

    Returns:
        Where in `old` it ends, and its length; both 0 without one.
    """
    shorter = _shorter_beginnings(new)
    best_end = best = length = 0
    for end, key in enumerate(old, start=1):
        if length == len(new):
            length = shorter[length]
        while length and new[length] != key:
            length = shorter[length]
        if new[length] == key:
            length += 1
        if length >= best and length:
            best_end, best = end, length
    return best_end, best


def _shorter_beginnings(keys: Sequence[int]) -> list[int]:
    """Return, for each length, the longest shorter beginning that a beginning so long ends in."""
    shorter = [0] * (len(keys) + 1)
    length = 0
    for end in range(2, len(keys) + 1):
        key = keys[end - 1]
        while length and keys[length] != key:
            length = shorter[length]
        if keys[length] == key:
            length += 1
        shorter[end] = length
    return shorter
