"""Words to write conversations in."""

from collections.abc import Sequence

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Media, Message, ToolResult, ToolUse
from gateway.inference.v1.inference_pb2 import GenerateRequest, Memory
from gateway.memory.v1.memory_pb2 import Turn, TurnContext

IMAGE = conversation.MEDIA_KIND_IMAGE
DOCUMENT = conversation.MEDIA_KIND_DOCUMENT


def message(role: conversation.Role.ValueType, *blocks: Block | str) -> Message:
    return Message(
        role=role, blocks=[Block(text=one) if isinstance(one, str) else one for one in blocks]
    )


def user(*blocks: Block | str) -> Message:
    return message(conversation.ROLE_USER, *blocks)


def assistant(*blocks: Block | str) -> Message:
    return message(conversation.ROLE_ASSISTANT, *blocks)


def system(*blocks: Block | str) -> Message:
    return message(conversation.ROLE_SYSTEM, *blocks)


def developer(*blocks: Block | str) -> Message:
    return message(conversation.ROLE_DEVELOPER, *blocks)


def call(call_id: str) -> Block:
    return Block(tool_use=ToolUse(id=call_id, name="look", input="{}"))


def result(call_id: str, *blocks: Block) -> Block:
    return Block(tool_result=ToolResult(tool_use_id=call_id, blocks=blocks))


def image(**source: object) -> Block:
    mime_type = "image/png" if "data" in source else ""
    return Block(media=Media(kind=IMAGE, mime_type=mime_type, **source))


def request(*messages: Message, memory_id: str = "m", **fields: object) -> GenerateRequest:
    """Return a request in which the memory of that id takes part; without one, the profile."""
    memory = Memory(memory_id=memory_id, personal_memory=not memory_id)
    return GenerateRequest(**{"model": "a", "messages": messages, "memory": memory, **fields})


def context(
    *present: Message, turns: Sequence[Sequence[Message]] = (), **fields: object
) -> TurnContext:
    """Return a context whose newest message of the user is the last that is one."""
    newest = max(index for index, one in enumerate(present) if one.role == conversation.ROLE_USER)
    return TurnContext(
        **{
            "messages": present,
            "newest_user_message_index": newest,
            "turns": [Turn(number=n, messages=messages) for n, messages in enumerate(turns, 1)],
            **fields,
        }
    )


def texts(messages: Sequence[Message]) -> list[str]:
    """Return what is said in each message, `-` for what is no text."""
    return [" ".join(block.text or "-" for block in one.blocks) for one in messages]
