"""Splits a request into the part for Memory and the part that stays in this process. Pure.

Instructions (system, developer) are never stored. Memory receives hashes in place of media;
the bytes stay here and are restored where Memory returns their hashes.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Media, Message
from gateway.inference.v1.inference_pb2 import GenerateRequest, Memory
from gateway.memory.v1.memory_pb2 import BeginTurn
from services.common.errors import invalid
from services.inference.media import find_media, media_blocks
from services.inference.plans.plan import Plan
from services.inference.request import thinking
from services.inference.tools import history

_INSTRUCTIONS = (conversation_pb2.ROLE_SYSTEM, conversation_pb2.ROLE_DEVELOPER)
_NOT_KEPT = thinking.KINDS | history.KINDS
_MODES = {
    Memory.MODE_READ_WRITE: BeginTurn.MODE_READ_WRITE,
    Memory.MODE_READ_ONLY: BeginTurn.MODE_READ_ONLY,
}


@dataclass(slots=True)
class SplitRequest:
    """The parts of a request's conversation.

    Attributes:
        begin: the message that begins the turn in Memory.
        instructions: the system and developer messages.
        kept: with a profile only, without a memory: the caller's conversation, with the path of
            each of its media in reading order.
        media: with a memory: path and medium of each of the caller's media, by `media_key`.
        messages_with_thinking: messages with tool calls and with thinking or calls of the gateway's
            own tools, neither of which Memory stores, by the ids of the tool calls.
    """

    begin: BeginTurn
    instructions: list[Message]
    kept: tuple[Sequence[Message], Sequence[str]] | None = None
    media: dict[str, tuple[str, Media]] = field(default_factory=dict)
    messages_with_thinking: dict[tuple[str, ...], Message] = field(default_factory=dict)


def uses_memory(request: GenerateRequest) -> bool:
    """Return whether a request uses the server's memory."""
    if not request.HasField("memory"):
        return False
    return bool(request.memory.memory_id) or request.memory.personal_memory


def check_steps(request: GenerateRequest, plan: Plan) -> None:
    """Check that all steps have the conversation of the request, which is the one stored.

    Their instructions may differ.

    Raises:
        GatewayError: invalid, with the path of the step's field.
    """
    for step in plan.steps:
        if step.parameters is None or not step.parameters.messages:
            continue
        _, theirs = divide(step.parameters.messages, request.memory)
        if theirs != divide(request.messages, request.memory)[1]:
            path = f"{step.path}.parameters.messages"
            raise invalid(path, f"{path}: must be the same as in the request if a memory is used")


def divide(
    messages: Sequence[Message], memory: Memory
) -> tuple[Sequence[Message], Sequence[Message]]:
    """Return the instructions, and the messages of the conversation.

    With a memory all system and developer messages are instructions, else those at the beginning.
    """
    if memory.memory_id:
        before = [message for message in messages if message.role in _INSTRUCTIONS]
        return before, [message for message in messages if message.role not in _INSTRUCTIONS]
    begins = 0
    while begins < len(messages) and messages[begins].role in _INSTRUCTIONS:
        begins += 1
    return messages[:begins], messages[begins:]


def split_request(request: GenerateRequest) -> SplitRequest:
    """Split a request, and remove its messages.

    Hashing large media takes long.

    Raises:
        GatewayError: invalid, if there are only instructions.
    """
    before, conversation = divide(request.messages, request.memory)
    if not conversation:
        raise invalid(
            "messages",
            "messages: must contain a message that is not an instruction if a memory is used",
        )
    split = _split_for_memory if request.memory.memory_id else _split_for_profile
    parts = split(request, _copies(before), conversation)
    del request.messages[:]
    return parts


def call_ids(message: Message) -> tuple[str, ...]:
    """Return the ids of the tool calls of a message, in order."""
    return tuple(block.tool_use.id for block in message.blocks if block.HasField("tool_use"))


def media_key(media: Media) -> str:
    """Return the key of a medium: its URL or file id, and for bytes their hash."""
    return f"{media.WhichOneof('source')} {media.sha256.hex() or media.url or media.file_id}"


def _split_for_memory(
    request: GenerateRequest, before: list[Message], conversation: Sequence[Message]
) -> SplitRequest:
    media: dict[str, tuple[str, Media]] = {}
    for one in find_media(request):
        itself = Media()
        itself.CopyFrom(one.block.media)
        _hash(one.block.media)
        media.setdefault(media_key(one.block.media), (one.path, itself))
    begin = _begin_message(request.memory, conversation)
    messages_with_thinking: dict[tuple[str, ...], Message] = {}
    for message in begin.messages:
        ids = call_ids(message)
        if ids and any(block.WhichOneof("kind") in _NOT_KEPT for block in message.blocks):
            messages_with_thinking[ids] = message
    return SplitRequest(begin, before, media=media, messages_with_thinking=messages_with_thinking)


def _split_for_profile(
    request: GenerateRequest, before: list[Message], conversation: Sequence[Message]
) -> SplitRequest:
    paths = [one.path for one in find_media(request)]
    paths = paths[sum(1 for _ in media_blocks(before)) :]
    messages = _copies(conversation)
    begin = _begin_message(request.memory, _newest(messages))
    for block in media_blocks(begin.messages):
        _hash(block.media)
    return SplitRequest(begin, before, kept=(messages, paths))


def _begin_message(memory: Memory, messages: Iterable[Message]) -> BeginTurn:
    begin = BeginTurn(
        memory_id=memory.memory_id,
        mode=_MODES.get(memory.mode, BeginTurn.MODE_UNSPECIFIED),
        personal_memory=memory.personal_memory,
        messages=messages,
    )
    if memory.HasField("history_window"):
        begin.history_window = memory.history_window
    if memory.HasField("summary_window"):
        begin.summary_window = memory.summary_window
    return begin


def _newest(messages: Sequence[Message]) -> list[Message]:
    """Return the user's newest message that is not a tool result, and all messages after it."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == conversation_pb2.ROLE_USER and any(
            not block.HasField("tool_result") for block in message.blocks
        ):
            return [one for one in messages[index:] if one.role not in _INSTRUCTIONS]
    return [message for message in messages if message.role not in _INSTRUCTIONS][-1:]


def _hash(media: Media) -> None:
    if media.WhichOneof("source") == "data":
        media.sha256 = hashlib.sha256(media.data).digest()


def _copies(messages: Iterable[Message]) -> list[Message]:
    copies = []
    for message in messages:
        copy = Message()
        copy.CopyFrom(message)
        copies.append(copy)
    return copies
