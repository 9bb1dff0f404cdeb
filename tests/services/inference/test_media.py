"""Media of requests, and their paths."""

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
    ("messages", "path"),
    [
        ([SYSTEM, user(MEDIUM)], "messages[1].blocks[0]"),
        ([user(Block(text="a"), MEDIUM)], "messages[0].blocks[1]"),
        ([user(RESULT)], "messages[0].blocks[0].tool_result.blocks[1]"),
        (
            [user(Block(text="a")), user(Block(text="b"), RESULT)],
            "messages[1].blocks[1].tool_result.blocks[1]",
        ),
    ],
)
def test_a_medium_has_the_path_of_its_block(messages, path) -> None:
    (medium,) = find_media(GenerateRequest(messages=messages))
    assert medium.path == path
