"""Reconcile the messages of a request with the stored transcript of a memory."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.conversation.v1.conversation_pb2 import Message
from services.common.process.byte_budget import Admit
from services.common.process.offload import offload_if
from services.memory.storage.memory_records import CONTENT_FACTOR, MemoryRecord
from services.memory.storage.messages import has_large_messages, has_many_messages
from services.memory.storage.repository import MemoryRepository
from services.memory.storage.stored_turns import (
    StoredTurn,
    extend_turns,
    pending_call_ids,
    user_text,
)
from services.memory.turns.transcript_merge import (
    MergePoint,
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
        turns: the turns that are new, continued or changed, in order; the last is the present,
            which the model answers.
        changed: number of the first stored turn that is cut or superseded, or of the next turn
            when none is.
        before: the stored turn that contains the last message that stays, if any does.
        new_bytes: approximate stored size of the new messages, without the answer.
    """

    keep: int
    rewinds: bool
    turns: Sequence[StoredTurn]
    changed: int
    before: StoredTurn | None
    new_bytes: int

    @property
    def turns_with_new_text(self) -> list[StoredTurn]:
        """The turns with text of the user that is not stored yet."""
        stored_text = self.before and (self.before.number, user_text(self.before.messages))
        return [
            turn for turn in self.turns if (turn.number, user_text(turn.messages)) != stored_text
        ]


def continue_transcript(
    new: Sequence[Message],
    now_ms: int,
    keep: int = 0,
    before: StoredTurn | None = None,
    *,
    rewinds: bool = False,
    changed: int = 1,
) -> Reconciliation:
    """Return how new messages continue a transcript, by default one that has no turn yet.

    Args:
        new: the messages that are not stored yet, in normal form.
        now_ms: Unix milliseconds.
        keep: see `Reconciliation`, as all that follow.
        before: the same.
        rewinds: the same.
        changed: the same.
    """
    turns = extend_turns(before, keep, new, now_ms)
    new_bytes = CONTENT_FACTOR * sum(map(Message.ByteSize, new))
    return Reconciliation(keep, rewinds, turns, changed, before, new_bytes)


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
        return await offload_if(has_many_messages(sent), continue_transcript, sent, now_ms)
    last = newest[-1] if newest else None
    if last is None or last.first_message + len(last.messages) != record.messages:
        raise MemoryRewoundError
    pending = pending_call_ids(last.messages) if last.open else frozenset[str]()
    point = MergePoint(record.messages, 0)
    if needs_keys(sent, record.messages, pending):
        transcript = StoredTranscript(record.messages, pending, await repository.keys(record.id))
        point = await offload_if(has_large_messages(sent), find_merge_point, sent, transcript)
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
    return await offload_if(
        has_many_messages(new),
        continue_transcript,
        new,
        now_ms,
        point.keep,
        before,
        rewinds=point.keep < record.messages,
        changed=changed,
    )
