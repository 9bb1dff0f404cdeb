"""Where what a client sends meets a memory, and the turns that come of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.conversation.v1.conversation_pb2 import Message
from services.memory.storage.memory_records import MemoryRecord
from services.memory.storage.repository import MemoryRepository
from services.memory.transcript.offload import has_large_messages, has_many_messages, offload_if
from services.memory.transcript.transcript_merge import (
    StoredTranscript,
    find_merge_point,
    needs_keys,
)
from services.memory.transcript.turns import StoredTurn, extend_turns, pending_call_ids, user_text


class MemoryRewoundError(Exception):
    """A memory was rewound while it was read."""


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """How a memory goes on with a request.

    Attributes:
        keep: how many of its messages stay.
        rewinds: whether others do not.
        turns: those that are new, go on or are changed, in order; the last is the present.
        changed: number of the first turn of which something does not stay, or the next
            number when all stay.
        before: the stored turn that has the last message that stays, if any does.
    """

    keep: int
    rewinds: bool
    turns: Sequence[StoredTurn]
    changed: int
    before: StoredTurn | None = None

    @property
    def spoken(self) -> list[StoredTurn]:
        """Those of the turns in which the user says something that was not stored yet."""
        known = (
            None if self.before is None else (self.before.number, user_text(self.before.messages))
        )
        return [turn for turn in self.turns if (turn.number, user_text(turn.messages)) != known]

    def new_bytes(self) -> int:
        """Return how many bytes of messages are to be stored, before the answer."""
        return sum(
            message.ByteSize()
            for turn in self.turns
            for message in turn.messages[max(self.keep - turn.first_message, 0) :]
        )

    @property
    def present(self) -> StoredTurn:
        """The turn that the request is about."""
        return self.turns[-1]


def start_transcript(sent: Sequence[Message], now_ms: int) -> Reconciliation:
    """Begin a memory that has no turn yet."""
    return Reconciliation(0, False, extend_turns(None, 0, sent, now_ms), 1)


async def reconcile(
    repository: MemoryRepository, record: MemoryRecord, sent: Sequence[Message], now_ms: int
) -> Reconciliation:
    """Find out how a memory goes on with what was sent.

    Whoever does not hold the memory may find it rewound under their eyes.

    Args:
        repository: where the memory is.
        record: the memory.
        sent: at least one message, in normal form.
        now_ms: Unix milliseconds.

    Raises:
        MovedError: the memory is no longer as it was known.
    """
    if not record.messages:
        return await offload_if(has_many_messages(sent), start_transcript, sent, now_ms)
    last = await repository.turn_of_message(record.id, record.messages - 1)
    if last is None:
        raise MemoryRewoundError
    waiting = pending_call_ids(last.messages) if last.open else frozenset[str]()
    keys = b""
    if needs_keys(sent, record.messages, waiting):
        keys = await repository.keys(record.id)
    transcript = StoredTranscript(record.messages, waiting, keys)
    joined = await offload_if(has_large_messages(sent), find_merge_point, sent, transcript)
    rewinds = joined.keep < record.messages
    before: StoredTurn | None = None
    changed = 1
    if joined.keep:
        before = last
        if joined.keep <= last.first_message:
            before = await repository.turn_of_message(record.id, joined.keep - 1)
            if before is None:
                raise MemoryRewoundError
        is_cut = joined.keep < before.first_message + len(before.messages)
        changed = before.number if is_cut else before.number + 1
    new = sent[joined.known :]
    turns = await offload_if(has_many_messages(new), extend_turns, before, joined.keep, new, now_ms)
    return Reconciliation(joined.keep, rewinds, turns, changed, before)
