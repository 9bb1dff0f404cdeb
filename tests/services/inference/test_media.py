"""Media of requests, and where their callers wrote them."""

import pytest

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Media, Message, ToolResult
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.inference.media import find_media

MEDIUM = Block(media=Media(kind=conversation.MEDIA_KIND_IMAGE, url="https://x/y"))
RESULT = Block(tool_result=ToolResult(tool_use_id="t", blocks=[Block(text="x"), MEDIUM]))
SYSTEM = Message(role=conversation.ROLE_SYSTEM, blocks=[Block(text="Be")])


def user(*blocks: Block) -> Message:
    return Message(role=conversation.ROLE_USER, blocks=blocks)


@pytest.mark.parametrize(
    ("dialect", "messages", "path"),
    [
        (
            conversation.DIALECT_OPENAI,
            [SYSTEM, user(Block(text="a"), MEDIUM)],
            "messages[1].content[1]",
        ),
        (conversation.DIALECT_OPENAI, [user(RESULT)], "messages[0].content[1]"),
        (
            conversation.DIALECT_ANTHROPIC,
            [SYSTEM, user(Block(text="a"), MEDIUM)],
            "messages[0].content[1]",
        ),
        (conversation.DIALECT_ANTHROPIC, [user(MEDIUM)], "messages[0].content[0]"),
        (
            conversation.DIALECT_ANTHROPIC,
            [user(Block(text="a")), user(Block(text="b"), RESULT)],
            "messages[1].content[1].content[1]",
        ),
        (conversation.DIALECT_UNSPECIFIED, [SYSTEM, user(MEDIUM)], "messages[1].blocks[0]"),
        (
            conversation.DIALECT_UNSPECIFIED,
            [user(RESULT)],
            "messages[0].blocks[0].tool_result.blocks[1]",
        ),
    ],
)
def test_a_part_is_named_by_its_path_in_the_callers_dialect(dialect, messages, path) -> None:
    (found,) = find_media(GenerateRequest(dialect=dialect, messages=messages))
    assert found.path == path
