"""Conversations of chats in requests to Anthropic."""

from typing import Any

import orjson
import pytest

from gateway.conversation.v1.conversation_pb2 import Block, ToolUse
from tests.services.inference.providers.anthropic_calls import (
    ANTHROPIC,
    ASSISTANT,
    OPENAI,
    SYSTEM,
    USER,
    body_of,
    call_of,
    content_of,
    opaque,
    refusal_of,
    says,
)
from tests.services.inference.providers.caller_paths import dropped_of


def use(call_id: str = "t1", arguments: str = "{}", **fields: Any) -> Block:
    return Block(tool_use=ToolUse(id=call_id, name="f", input=arguments, **fields))


MALFORMED = ["{", "[]", "1", '"x"', "null", "{}{}", '{"a":1},"b":{}']

BILLING = "x-anthropic-billing-header: cc_version=2.1.117.48f; cc_entrypoint=cli; cch=71fea;"


@pytest.mark.parametrize("arguments", MALFORMED)
def test_invalid_arguments_of_a_chat_are_sent_as_text(arguments: str) -> None:
    assert content_of(use("t", arguments), role=ASSISTANT)[0]["input"] == {"malformed": arguments}


def test_white_space_alone_is_left_out_of_a_chat() -> None:
    call = call_of(says(USER, " \n", "a"), says(ASSISTANT, "\n"), says(USER, "b"))
    assert [message["content"] for message in body_of(call)["messages"]] == ["a", "b"]


def test_a_chat_of_white_space_alone_is_refused() -> None:
    assert refusal_of(call_of(says(USER, " "))) == ("INVALID_REQUEST", "messages")


def test_a_system_message_alone_is_what_is_asked() -> None:
    body = body_of(call_of(says(SYSTEM, "Say hello.")))
    assert body["messages"] == [{"role": "user", "content": "Say hello."}]
    assert "system" not in body


def test_a_prefill_of_a_chat_ends_without_white_space() -> None:
    body = body_of(call_of(says(USER, "a"), says(ASSISTANT, "Well, \n")))
    assert body["messages"][-1]["content"] == "Well,"


def test_cache_control_of_a_chats_part_is_carried() -> None:
    mark = {"type": "ephemeral"}
    part = Block(text="a", extra=opaque({"cache_control": mark}, OPENAI))
    call = call_of(says(USER, part))
    assert body_of(call)["messages"][0]["content"][0]["cache_control"] == mark
    assert dropped_of(call) == []


def test_cache_control_of_a_chats_message_is_its_last_blocks() -> None:
    mark = {"type": "ephemeral"}
    extra = opaque({"cache_control": mark}, OPENAI)
    call = call_of(says(SYSTEM, "s", extra=extra), says(USER, "a", "b", extra=extra))
    body = body_of(call)
    assert [block.get("cache_control") for block in body["messages"][0]["content"]] == [None, mark]
    assert (body["system"][0]["cache_control"], dropped_of(call)) == (mark, [])


def test_billing_headers_go_to_anthropic_alone() -> None:
    call = call_of(says(SYSTEM, BILLING, "Be brief.", has_billing_line=True), says(USER, "hi"))
    assert body_of(call, official=False)["system"] == "Be brief."
    assert dropped_of(call) == ["messages[].has_billing_line"]
    alone = call_of(says(SYSTEM, BILLING, has_billing_line=True), says(USER, "hi"))
    assert "system" not in body_of(alone, official=False)
    joined = call_of(says(SYSTEM, f"{BILLING}\nBe brief.", has_billing_line=True), says(USER, "hi"))
    assert body_of(joined, official=False)["system"] == "Be brief."
    chat = call_of(says(SYSTEM, BILLING, "Be brief."), says(USER, "hi"))
    assert BILLING in orjson.dumps(body_of(chat, official=False)["system"]).decode()


def test_anthropic_itself_gets_the_billing_header() -> None:
    system = says(SYSTEM, BILLING, "Be brief.", has_billing_line=True)
    call = call_of(system, says(USER, "hi"), dialect=ANTHROPIC)
    assert [block["text"] for block in body_of(call)["system"]] == [BILLING, "Be brief."]
    assert dropped_of(call) == []
