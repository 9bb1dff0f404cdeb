"""Which messages of a conversation a summary replaces. Pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Message
from services.common.messages.sealed_summary import SUMMARY
from services.common.text.texts import elide_middle
from services.common.text.tokens import estimate_tokens

_ASSISTANT = conversation_pb2.ROLE_ASSISTANT
_USER = conversation_pb2.ROLE_USER
_INSTRUCTING = (conversation_pb2.ROLE_SYSTEM, conversation_pb2.ROLE_DEVELOPER)
# Characters of a message of the user that is repeated word for word.
_MAX_REPEATED = 8_000
_LATEST = "The user's latest messages, word for word:"


class Split(NamedTuple):
    """The parts of a conversation.

    Attributes:
        instructions: messages of the system, which stay.
        replaced: messages that a summary replaces.
        kept: the newest messages, which stay.
    """

    instructions: Sequence[Message]
    replaced: Sequence[Message]
    kept: Sequence[Message]

    def with_summary(self, summary: str) -> list[Message]:
        """Return the conversation with a summary in place of what it replaces."""
        block = Block(text=f"{SUMMARY}\n{summary}")
        first = self.kept[0] if self.kept else None
        if first is None or first.role != _USER or _has_results(first):
            summarised = Message(role=_USER, blocks=[block])
            return [*self.instructions, summarised, *self.kept]
        merged = Message(role=_USER, blocks=[block, *first.blocks], name=first.name)
        return [*self.instructions, merged, *self.kept[1:]]


def split_whole(messages: Iterable[Message]) -> Split:
    """Return the parts of a conversation that is compacted as a whole."""
    instructions, others = _divided(messages)
    return Split(instructions, others, ())


def split_before_answer(messages: Iterable[Message]) -> Split:
    """Return the parts of a conversation that is to be answered.

    What the answer continues is kept: the user's last message, or the last results of tools with
    their calls; and the beginning of the answer, if there is one.
    """
    instructions, others = _divided(messages)
    first = len(others)
    if first and others[first - 1].role == _ASSISTANT:
        first -= 1
    if first and _has_results(others[first - 1]):
        while first and _has_results(others[first - 1]):
            first -= 1
        while first and others[first - 1].role == _ASSISTANT:
            first -= 1
    elif first:
        first -= 1
    return Split(instructions, others[:first], others[first:])


def latest_of_user(messages: Sequence[Message], max_tokens: int) -> list[str]:
    """Return the texts of the user's latest messages that have `max_tokens` together, in order."""
    texts: list[str] = []
    for message in reversed(messages):
        if message.role != _USER:
            continue
        parts = [b.text for b in message.blocks if b.text and not b.text.startswith(SUMMARY)]
        text = elide_middle("\n".join(parts), _MAX_REPEATED)
        if not text.strip():
            continue
        max_tokens -= estimate_tokens(text)
        if max_tokens < 0:
            break
        texts.append(text)
    return texts[::-1]


def with_latest(summary: str, texts: Sequence[str]) -> str:
    """Return a summary with the user's latest messages."""
    if not texts:
        return summary
    quoted = "\n\n".join(f"<message>\n{text}\n</message>" for text in texts)
    return f"{summary}\n\n{_LATEST}\n{quoted}"


def _divided(messages: Iterable[Message]) -> tuple[list[Message], list[Message]]:
    """Return the messages of the system, and all others."""
    instructions: list[Message] = []
    others: list[Message] = []
    for message in messages:
        (instructions if message.role in _INSTRUCTING else others).append(message)
    return instructions, others


def _has_results(message: Message) -> bool:
    return any(block.HasField("tool_result") for block in message.blocks)
