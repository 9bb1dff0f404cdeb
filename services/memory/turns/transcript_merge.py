"""Finds where the messages of a request continue the stored transcript. Pure.

A client may send the whole conversation, its newest part, or its newest messages alone; the request
does not state which. The messages are compared by their keys, in linear time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Message
from services.memory.storage.messages import has_results, message_key

# Number of equal leading messages from which on two transcripts are the same conversation.
_CERTAIN = 2


@dataclass(frozen=True, slots=True)
class StoredTranscript:
    """A stored transcript, as far as `find_merge_point` needs it.

    Attributes:
        messages: count of messages.
        pending: ids of the last turn's tool calls that have no result yet.
        keys: the keys of all messages, concatenated; may be empty unless `needs_keys`.
    """

    messages: int
    pending: frozenset[str] = frozenset()
    keys: bytes = b""


@dataclass(frozen=True, slots=True)
class MergePoint:
    """Where the messages of a request continue a stored transcript.

    Attributes:
        keep: number of stored messages that stay, from the first on. If there are others, the
            request is an edit or asks for a new answer, and the others are superseded.
        known: number of sent messages that are stored already, from the first on; their stored
            form is kept. The others are new.
    """

    keep: int
    known: int


def needs_keys(sent: Sequence[Message], messages: int, pending: frozenset[str]) -> bool:
    """Return whether `find_merge_point` needs the keys of the stored messages.

    It does not need them for a client that sends the newest messages alone.

    Args:
        sent: at least one message, in normal form.
        messages: count of stored messages.
        pending: ids of the last turn's tool calls that have no result yet.
    """
    if not messages or (pending and _answers_calls(sent, pending)):
        return False
    return not _is_newest_only(sent) or len(sent) > messages


def find_merge_point(sent: Sequence[Message], transcript: StoredTranscript) -> MergePoint:
    """Return the point at which the messages of a request continue a stored transcript.

    Args:
        sent: at least one message, in normal form (see `messages.normalize`).
        transcript: the stored messages, in normal form too.
    """
    stored = transcript.messages
    nothing = MergePoint(stored, 0)
    if not needs_keys(sent, stored, transcript.pending):
        return nothing
    old = _to_integers(transcript.keys)
    new = _to_integers(b"".join([message_key(message) for message in sent]))
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    if _is_newest_only(sent):
        # A whole conversation whose answers are all empty also has user messages only.
        return MergePoint(stored, stored) if same == stored else nothing
    if same >= _CERTAIN or same == stored:
        return MergePoint(same, same)
    first_other = next(place for place, message in enumerate(sent) if not _is_user_message(message))
    end, length = _longest_prefix_match(old, new)
    return MergePoint(end, length) if length > first_other else nothing


def _is_user_message(message: Message) -> bool:
    return message.role == conversation_pb2.ROLE_USER and not has_results(message)


def _is_newest_only(sent: Sequence[Message]) -> bool:
    return all(map(_is_user_message, sent))


def _answers_calls(sent: Sequence[Message], pending: frozenset[str]) -> bool:
    """Return whether tool results at the beginning answer pending calls of the open turn."""
    return any(
        block.tool_result.tool_use_id in pending
        for message in takewhile(has_results, sent)
        for block in message.blocks
    )


def _to_integers(keys: bytes) -> list[int]:
    # A key has 8 bytes, so keys compare fast as integers.
    return memoryview(keys).cast("Q").tolist()


def _longest_prefix_match(old: Sequence[int], new: Sequence[int]) -> tuple[int, int]:
    """Find the longest prefix of `new` that occurs in `old`, and its last occurrence.

    This is the search of Knuth, Morris and Pratt.

    Returns:
        The end of the occurrence in `old`, and its length; both 0 without one.
    """
    borders = _border_lengths(new)
    best_end = best = length = 0
    for end, key in enumerate(old, start=1):
        if length == len(new):
            length = borders[length]
        while length and new[length] != key:
            length = borders[length]
        if new[length] == key:
            length += 1
        if length >= best and length:
            best_end, best = end, length
    return best_end, best


def _border_lengths(keys: Sequence[int]) -> list[int]:
    """Return, for each length of prefix, the length of its longest proper border."""
    borders = [0] * (len(keys) + 1)
    length = 0
    for end in range(2, len(keys) + 1):
        key = keys[end - 1]
        while length and keys[length] != key:
            length = borders[length]
        if keys[length] == key:
            length += 1
        borders[end] = length
    return borders
