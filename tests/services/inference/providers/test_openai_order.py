"""Messages whose place or content a server of chat completions restricts."""

from typing import Any

import pytest

from gateway.conversation.v1.conversation_pb2 import Block, Thinking
from tests.services.inference.providers.openai_calls import (
    ASSISTANT,
    DEVELOPER,
    SYSTEM,
    USER,
    body_of,
    call_of,
    medium,
    says,
    sent,
)
from tests.services.inference.providers.test_openai_messages import IMAGE_PART, PNG, result, use


@pytest.mark.parametrize("role", [USER, SYSTEM, DEVELOPER, ASSISTANT])
def test_messages_between_a_call_and_its_result_follow_it(role: Any) -> None:
    messages = sent(
        says(ASSISTANT, use("c1"), use("c2")),
        says(USER, result("c1", "x")),
        says(role, "by the way"),
        says(USER, result("c2", "y")),
        says(SYSTEM, "be brief"),
        newest=False,
    )
    assert [message["content"] for message in messages] == [
        None,
        "x",
        "y",
        "by the way",
        "be brief",
    ]


def test_a_call_that_is_never_answered_moves_no_later_message() -> None:
    messages = sent(
        says(ASSISTANT, use("c1")), says(USER, "a"), says(ASSISTANT, "b"), says(SYSTEM, "c")
    )
    assert [message["content"] for message in messages][1:] == ["a", "b", "c"]


def test_a_server_that_requires_thinking_always_gets_some() -> None:
    empty = Block(thinking=Thinking(text=""))
    call = call_of(
        says(USER, "a"),
        says(ASSISTANT, use()),
        says(USER, result("c1", "x")),
        says(ASSISTANT, "so"),
        says(ASSISTANT, empty, "so"),
        says(ASSISTANT, Block(thinking=Thinking(text="hm")), "so"),
        says(USER, "b"),
    )
    call.refused_fields = frozenset({"calls_without_thoughts"})
    messages = body_of(call, known=False, newest=False)["messages"]
    thoughts = [m["reasoning_content"] for m in messages if m["role"] == "assistant"]
    assert all(thoughts[:3]) and thoughts[3] == "hm"


@pytest.mark.parametrize("claimed", ["image/jpeg", "", "image/png; x=1"])
def test_the_type_of_an_image_is_that_of_its_data(claimed: str) -> None:
    [message] = sent(says(USER, medium("image", data=PNG, mime_type=claimed)))
    assert message["content"] == [IMAGE_PART]
