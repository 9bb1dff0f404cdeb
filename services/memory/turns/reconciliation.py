"""Reconcile the messages of a request with the stored transcript of a memory."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.conversation.v1.conversation_pb2 import Message
from services.common.process.byte_budget import Admit
from services.common.process.offload import offload_if
from services.memory.storage.memory_records import MemoryRecord
from services.memory.storage.messages import has_large_messages, has_many_messages
from services.memory.storage.repository import MemoryRepository
from services.memory.storage.stored_turns import (
    StoredTurn,
    extend_turns,
    pending_call_ids,
    user_text,
)
from services.memory.storage.transcript_rows import CONTENT_FACTOR
from services.memory.turns.transcript_merge import (
    StoredTranscript,
    find_merge_point,
    needs_keys,
)


class MemoryRewoundError(Exception):
    """Error raised when a memory was rewound while it was read."""


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """How a request continues a memory.

    Attributes:
        keep: number of stored messages that stay, from the first on.
        rewinds: whether there are other stored messages, which are superseded.
        turns: the turns that are new, continued or changed, in order; the last is the present.
        changed: number of the first stored turn that is cut or superseded, or of the next turn
            when none is.
        before: the stored turn that contains the last message that stays, if any does.
    """

    keep: int
    rewinds: bool
    turns: Sequence[StoredTurn]
    changed: int
    before: StoredTurn | None = None

    @property
    def present(self) -> StoredTurn:
        """The present turn: the one that the model answers."""
        return self.turns[-1]

    @property
    def turns_with_new_text(self) -> list[StoredTurn]:
        """The turns with text of the user that is not stored yet."""
        known = self.before and (self.before.number, user_text(self.before.messages))
        return [turn for turn in self.turns if (turn.number, user_text(turn.messages)) != known]

    def stored_size(self) -> int:
        """Return the approximate stored size of the new messages in bytes, without the answer."""
        return CONTENT_FACTOR * sum(
            message.ByteSize()
            for turn in self.turns
            for message in turn.messages[max(self.keep - turn.first_message, 0) :]
        )


def start_transcript(sent: Sequence[Message], now_ms: int) -> Reconciliation:
    """Return the reconciliation of a request with a memory that has no turn yet."""
    return Reconciliation(0, False, extend_turns(None, 0, sent, now_ms), 1)


async def reconcile(
    repository: MemoryRepository,
    record: MemoryRecord,
    newest: Sequence[StoredTurn],
    sent: Sequence[Message],
    now_ms: int,
    admit: Admit | None = None,
) -> Reconciliation:
    """Return how a request continues a memory.

    Args:
        repository: reads what else is needed.
        record: the memory.
        newest: its newest turns, at least the last one.
        sent: the request's messages, at least one, in normal form.
        now_ms: Unix milliseconds.
        admit: called with the bytes of stored turns before they are read.

    Raises:
        MemoryRewoundError: the memory was rewound during the call; the write lock prevents that.
    """
    if not record.messages:
        return await offload_if(has_many_messages(sent), start_transcript, sent, now_ms)
    last = newest[-1] if newest else None
    if last is None or last.first_message + len(last.messages) != record.messages:
        raise MemoryRewoundError
    pending = pending_call_ids(last.messages) if last.open else frozenset[str]()
    keys = b""
    if needs_keys(sent, record.messages, pending):
        keys = await repository.keys(record.id)
    transcript = StoredTranscript(record.messages, pending, keys)
    point = await offload_if(has_large_messages(sent), find_merge_point, sent, transcript)
    rewinds = point.keep < record.messages
    before: StoredTurn | None = None
    changed = 1
    if point.keep:
        before = last
        if point.keep <= last.first_message:
            before = await repository.turn_of_message(record.id, point.keep - 1, admit)
            if before is None:
                raise MemoryRewoundError
        is_cut = point.keep < before.first_message + len(before.messages)
        changed = before.number if is_cut else before.number + 1
    new = sent[point.known :]
    turns = await offload_if(has_many_messages(new), extend_turns, before, point.keep, new, now_ms)
    return Reconciliation(point.keep, rewinds, turns, changed, before)
