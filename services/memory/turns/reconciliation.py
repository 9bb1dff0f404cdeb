"""Where what a client sends meets a memory, and the turns that come of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.conversation.v1.conversation_pb2 import Message
from services.memory.storage.memory_records import Entity
from services.memory.storage.repository import Repository
from services.memory.transcript.offload import apart, is_large, is_many
from services.memory.transcript.transcript_merge import Transcript, join, needs_keys
from services.memory.transcript.turns import StoredTurn, asked, awaited, extended


class MovedError(Exception):
    """A memory was rewound while it was read."""


@dataclass(frozen=True, slots=True)
class Meeting:
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
        known = None if self.before is None else (self.before.number, asked(self.before.messages))
        return [turn for turn in self.turns if (turn.number, asked(turn.messages)) != known]

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


def begin(sent: Sequence[Message], now_ms: int) -> Meeting:
    """Begin a memory that has no turn yet."""
    return Meeting(0, False, extended(None, 0, sent, now_ms), 1)


async def meet(
    repository: Repository, entity: Entity, sent: Sequence[Message], now_ms: int
) -> Meeting:
    """Find out how a memory goes on with what was sent.

    Whoever does not hold the memory may find it rewound under their eyes.

    Args:
        repository: where the memory is.
        entity: the memory.
        sent: at least one message, in normal form.
        now_ms: Unix milliseconds.

    Raises:
        MovedError: the memory is no longer as it was known.
    """
    if not entity.messages:
        return await apart(is_many(sent), begin, sent, now_ms)
    last = await repository.turn_of_message(entity.id, entity.messages - 1)
    if last is None:
        raise MovedError
    waiting = awaited(last.messages) if last.open else frozenset[str]()
    keys = b""
    if needs_keys(sent, entity.messages, waiting):
        keys = await repository.keys(entity.id)
    transcript = Transcript(entity.messages, waiting, keys)
    joined = await apart(is_large(sent), join, sent, transcript)
    rewinds = joined.keep < entity.messages
    before: StoredTurn | None = None
    changed = 1
    if joined.keep:
        before = last
        if joined.keep <= last.first_message:
            before = await repository.turn_of_message(entity.id, joined.keep - 1)
            if before is None:
                raise MovedError
        is_cut = joined.keep < before.first_message + len(before.messages)
        changed = before.number if is_cut else before.number + 1
    new = sent[joined.known :]
    turns = await apart(is_many(new), extended, before, joined.keep, new, now_ms)
    return Meeting(joined.keep, rewinds, turns, changed, before)
