import base64
import re
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Media, Thinking, ToolResult, ToolUse
from services.inference.learned.refusals import UNSIGNED_THINKING
from services.inference.providers.anthropic.request import build_request
from services.inference.request.thinking import Signer
from tests.services.inference.providers.anthropic_calls import (
    ANTHROPIC,
    ASSISTANT,
    DEVELOPER,
    NONE,
    OPENAI,
    SYSTEM,
    USER,
    body_of,
    call_of,
    content_of,
    messages_of,
    opaque,
    refusal_of,
    says,
)
from tests.services.inference.providers.caller_paths import dropped_of

IMAGE = conversation_pb2.MEDIA_KIND_IMAGE
PNG = Block(media=Media(kind=IMAGE, data=b"\x89PNG", mime_type="image/png"))
PNG_SENT = {
    "type": "image",
    "source": {
        "type": "base64",
        "media_type": "image/png",
        "data": base64.b64encode(b"\x89PNG").decode(),
    },
}
EPHEMERAL = b'{"type":"ephemeral"}'


def use(call_id: str = "t1", arguments: str = "{}", **fields: Any) -> Block:
    return Block(tool_use=ToolUse(id=call_id, name="f", input=arguments, **fields))


def result(call_id: str = "t1", *blocks: Block, **fields: Any) -> Block:
    return Block(tool_result=ToolResult(tool_use_id=call_id, blocks=blocks, **fields))


def test_one_plain_text_is_sent_as_a_string() -> None:
    assert messages_of(says(USER, "a")) == [{"role": "user", "content": "a"}]


def test_neighbours_of_one_role_become_one_message_in_order() -> None:
    sent = messages_of(says(USER, "a"), says(USER, "b"), says(ASSISTANT, "c"), says(USER, "d"))
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert [block["text"] for block in sent[0]["content"]] == ["a", "b"]


def test_results_of_tools_come_first_and_keep_their_order() -> None:
    sent = messages_of(
        says(USER, "a"),
        says(ASSISTANT, use("t1"), use("t2")),
        says(USER, "before"),
        says(USER, result("t1")),
        says(USER, result("t2"), "after"),
    )
    assert [block.get("tool_use_id", block.get("text")) for block in sent[-1]["content"]] == [
        *("t1", "t2"),
        *("before", "after"),
    ]


@pytest.mark.parametrize("dialect", [OPENAI, ANTHROPIC, NONE])
def test_leading_system_messages_make_the_system_prompt(dialect: int) -> None:
    body = body_of(call_of(says(SYSTEM, "be brief"), says(USER, "hi"), dialect=dialect))
    assert body["system"] == "be brief"
    assert body["messages"] == [{"role": "user", "content": "hi"}]


def test_several_system_messages_stay_separate_and_in_order() -> None:
    body = body_of(call_of(says(SYSTEM, "a"), says(DEVELOPER, "b", "c"), says(USER, "hi")))
    assert [block["text"] for block in body["system"]] == ["a", "b", "c"]


def test_a_cached_system_prompt_keeps_its_mark() -> None:
    prompt = says(SYSTEM, Block(text="long", cache_control=EPHEMERAL))
    body = body_of(call_of(prompt, says(USER, "hi"), dialect=ANTHROPIC))
    assert body["system"] == [
        {"type": "text", "text": "long", "cache_control": {"type": "ephemeral"}}
    ]


@pytest.mark.parametrize("dialect", [OPENAI, NONE])
def test_later_system_messages_join_the_system_prompt(dialect: int) -> None:
    body = body_of(
        call_of(
            says(SYSTEM, "a"), says(USER, "b"), says(SYSTEM, "c"), says(USER, "d"), dialect=dialect
        )
    )
    assert [block["text"] for block in body["system"]] == ["a", "c"]
    assert [block["text"] for block in body["messages"][0]["content"]] == ["b", "d"]


def test_same_dialect_system_messages_stay_in_place() -> None:
    sent = messages_of(says(USER, "b"), says(SYSTEM, "c"), says(USER, "d"), dialect=ANTHROPIC)
    assert [message["role"] for message in sent] == ["user", "system", "user"]


def test_a_system_prompt_takes_text_alone() -> None:
    assert refusal_of(call_of(says(SYSTEM, PNG), dialect=ANTHROPIC)) == ("UNSUPPORTED", "system[0]")


@settings(deadline=None)
@given(st.lists(st.sampled_from(["", "x"]), max_size=4))
def test_empty_text_is_never_sent(texts: list[str]) -> None:
    sent = messages_of(says(USER, "first"), says(ASSISTANT, *texts), says(USER, "last"))
    text = orjson.dumps(sent).decode()
    assert '""' not in text
    assert text.count('"x"') == texts.count("x")


def test_a_prefill_stays_at_the_end() -> None:
    assert messages_of(says(USER, "a"), says(ASSISTANT, "{"))[-1] == {
        "role": "assistant",
        "content": "{",
    }


def test_a_tool_call_keeps_its_id_and_the_text_of_its_arguments() -> None:
    arguments = '{"n": 123456789012345678901234567890, "x": 1.10}'
    call = call_of(says(USER, "a"), says(ASSISTANT, use("call_1-A", arguments)), says(USER, "b"))
    sent = body_of(call)["messages"][1]["content"][0]
    assert sent["id"] == "call_1-A"
    assert arguments.encode() in build_request(
        call, {}, pass_stateful=False, fetches_urls=False, official=True
    )


@pytest.mark.parametrize("arguments", ["", " ", "{}"])
def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    assert content_of(use("t", arguments), role=ASSISTANT)[0]["input"] == {}


MALFORMED = ["{", "[]", "1", '"x"', "null", "{}{}", '{"a":1},"b":{}']


@pytest.mark.parametrize("arguments", MALFORMED)
def test_arguments_that_are_no_object_are_refused_by_their_path(arguments: str) -> None:
    messages = [says(USER, "a"), says(ASSISTANT, "b", use("t0"), use("t1", arguments))]
    assert refusal_of(call_of(says(SYSTEM, "s"), *messages, dialect=ANTHROPIC)) == (
        "INVALID_REQUEST",
        "messages[1].content[2].input",
    )


@pytest.mark.parametrize("given", ["call_é", "a.b", "functions.f:0", "x" * 300])
def test_an_invalid_id_is_replaced_alike_in_call_and_result(given: str) -> None:
    call = call_of(
        says(USER, "a"),
        says(ASSISTANT, use(given)),
        says(USER, result(given, Block(text="x"))),
    )
    _, called, answered = body_of(call)["messages"]
    sent = called["content"][0]["id"]
    assert re.fullmatch(r"call_[0-9a-f]{32}", sent)
    assert answered["content"][0]["tool_use_id"] == sent


def test_paths_begin_anew_with_each_message_and_part() -> None:
    before = [says(USER, "a"), says(ASSISTANT, use("t0"), use("t1"))]
    wrong = says(ASSISTANT, use("t2", "x", freeform=True))
    answered = says(USER, result("t0", Block(text="x")), result("t1", Block(text="x")))
    _, path = refusal_of(call_of(*before, answered, wrong))
    assert path == "messages[3].tool_calls[0]"
    sound = Block(media=Media(kind=conversation_pb2.MEDIA_KIND_AUDIO, data=b"x"))
    call = call_of(*before, says(USER, result("t0", Block(text="x")), sound), dialect=ANTHROPIC)
    assert refusal_of(call) == ("UNSUPPORTED", "messages[2].content[1]")


def test_a_call_of_a_free_text_tool_is_refused() -> None:
    call = call_of(says(USER, "a"), says(ASSISTANT, use("t", "select", freeform=True)))
    assert refusal_of(call) == ("UNSUPPORTED", "messages[1].tool_calls[0]")


def test_a_result_holds_text_images_and_whether_the_tool_failed() -> None:
    before = [says(USER, "a"), says(ASSISTANT, use("t1"), use("t2"), use("t3"))]
    results = [
        result("t1", Block(text="found"), is_error=True),
        result("t2", Block(text="see"), PNG),
        result("t3"),
    ]
    sent = messages_of(*before, says(USER, *results))[-1]["content"]
    assert sent == [
        {"type": "tool_result", "tool_use_id": "t1", "content": "found", "is_error": True},
        {
            "type": "tool_result",
            "tool_use_id": "t2",
            "content": [{"type": "text", "text": "see"}, PNG_SENT],
        },
        {"type": "tool_result", "tool_use_id": "t3"},
    ]


@pytest.mark.parametrize(
    ("dialect", "path"),
    [(OPENAI, "messages[0].content[1]"), (ANTHROPIC, "messages[0].content[1].content[1]")],
)
def test_a_part_of_a_result_is_named_in_the_callers_own_words(dialect: int, path: str) -> None:
    sound = Block(media=Media(kind=conversation_pb2.MEDIA_KIND_AUDIO, data=b"x"))
    message = says(USER, result("t0"), result("t1", Block(text="a"), sound))
    assert refusal_of(call_of(message, dialect=dialect)) == ("UNSUPPORTED", path)


def test_signed_and_redacted_thinking_keeps_bytes_and_order() -> None:
    blocks = [
        Block(thinking=Thinking(text="a", signature="AAA=")),
        Block(redacted_thinking="BBB="),
        Block(thinking=Thinking(text="", signature="CCC=")),
        Block(text="b"),
    ]
    assert content_of(*blocks, role=ASSISTANT, dialect=ANTHROPIC) == [
        {"type": "thinking", "thinking": "a", "signature": "AAA="},
        {"type": "redacted_thinking", "data": "BBB="},
        {"type": "thinking", "thinking": "", "signature": "CCC="},
        {"type": "text", "text": "b"},
    ]


@pytest.mark.parametrize("signature", ["", Signer({"a": b"k"}, "a").sign("x", "m")])
def test_thinking_that_no_provider_signed_is_never_sent(signature: str) -> None:
    block = Block(thinking=Thinking(text="x", signature=signature))
    assert content_of(block, Block(text="b"), role=ASSISTANT) == "b"


def test_a_refusal_becomes_text() -> None:
    assert content_of(Block(refusal="I can't"), role=ASSISTANT) == "I can't"


def test_blocks_without_a_name_here_go_on_as_they_came() -> None:
    search = {"type": "search_result", "source": "s", "title": "t", "content": []}
    assert content_of(Block(opaque=opaque(search)), dialect=ANTHROPIC) == [search]


def test_blocks_of_another_dialect_are_refused() -> None:
    block = Block(opaque=opaque({"type": "odd"}, OPENAI))
    assert refusal_of(call_of(says(USER, block))) == ("UNSUPPORTED", "messages[0].content[0]")


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ({"type": "container_upload", "file_id": "file_1"}, "file_id"),
        ({"type": "document", "source": {"type": "file", "file_id": "file_1"}}, "source.file_id"),
        (
            {
                "type": "document",
                "source": {
                    "type": "content",
                    "content": [{"type": "image", "source": {"type": "file", "file_id": "file_1"}}],
                },
            },
            "source.content[0].source.file_id",
        ),
    ],
)
def test_files_of_the_provider_are_found_however_deep(content: dict[str, Any], path: str) -> None:
    call = call_of(says(USER, "a", Block(opaque=opaque(content))), dialect=ANTHROPIC)
    assert refusal_of(call) == ("INVALID_REQUEST", f"messages[0].content[1].{path}")
    assert body_of(call, pass_stateful=True)["messages"][0]["content"][1] == content


def test_files_of_the_provider_do_not_hide_in_further_fields() -> None:
    block = result("t1")
    source = {"type": "file", "file_id": "file_1"}
    block.extra.CopyFrom(opaque({"content": [{"type": "image", "source": source}]}))
    call = call_of(says(USER, block), dialect=ANTHROPIC)
    path = "messages[0].content[0].content[0].source.file_id"
    assert refusal_of(call) == ("INVALID_REQUEST", path)


def test_arguments_may_mention_files() -> None:
    arguments = {"type": "file", "file_id": "mine"}
    block = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": arguments}
    assert content_of(Block(opaque=opaque(block)), role=ASSISTANT, dialect=ANTHROPIC) == [block]


@pytest.mark.parametrize("text", [b'{"type":"ephemeral"},"x":{}', b"[]", b"{"])
def test_cache_control_that_is_no_object_is_refused(text: bytes) -> None:
    block = Block(text="a", cache_control=text)
    refused = refusal_of(call_of(says(USER, block), dialect=ANTHROPIC))
    assert refused == ("INVALID_REQUEST", "messages[0].content[0].cache_control")


def test_the_name_of_a_participant_is_dropped_and_reported_once() -> None:
    call = call_of(says(USER, "a", name="ann"), says(USER, "b", name="bob"))
    body_of(call)
    assert dropped_of(call) == ["messages[].name"]


def test_foreign_fields_that_hold_content_are_refused() -> None:
    spoken = says(ASSISTANT, "x", extra=opaque({"audio": {"id": "audio_1"}}, OPENAI))
    assert refusal_of(call_of(says(USER, "a"), spoken)) == ("UNSUPPORTED", "messages[1].audio")


def test_other_foreign_fields_are_dropped_and_reported() -> None:
    part = Block(text="a", extra=opaque({"b": 1, "none": None}, OPENAI))
    call = call_of(says(USER, part, extra=opaque({"annotations": [], "audio": None}, OPENAI)))
    assert body_of(call)["messages"] == [{"role": "user", "content": "a"}]
    assert dropped_of(call) == ["messages[].content[].b", "messages[].annotations"]


def test_unknown_fields_of_a_message_go_on_in_the_same_dialect() -> None:
    message = says(USER, "a", extra=opaque({"output_items": 1, "role": "assistant"}))
    body = body_of(call_of(message, dialect=ANTHROPIC), official=False)
    assert body["messages"] == [{"role": "user", "content": "a", "output_items": 1}]


def test_fields_of_a_message_that_is_not_sent_go_with_it() -> None:
    prompt = says(SYSTEM, "s", extra=opaque({"clear_at": "never"}))
    empty = says(USER, "", extra=opaque({"y": 1}))
    call = call_of(prompt, empty, says(ASSISTANT, "a"), dialect=ANTHROPIC)
    assert body_of(call, official=False)["messages"] == [
        {"role": "system", "content": "s", "clear_at": "never"},
        {"role": "assistant", "content": "a"},
    ]
    between = [says(USER, "a"), says(SYSTEM, "s", extra=opaque({"x": 1})), says(USER, "b")]
    (message,) = messages_of(*between, dialect=NONE)
    assert message.keys() == {"role", "content"}


def test_a_hundred_thousand_messages_are_translated() -> None:
    messages = [says((USER, ASSISTANT)[index % 2], "x") for index in range(100_000)]
    assert len(body_of(call_of(*messages), official=False)["messages"]) == 100_000


@pytest.mark.parametrize("signature", ["", Signer({"k": b"0" * 32}, "k").sign("x", "m")])
def test_unsigned_servers_get_thinking_back_unsigned(signature: str) -> None:
    block = Block(thinking=Thinking(text="x", signature=signature))
    call = call_of(says(USER, "a"), says(ASSISTANT, block, "b"), says(USER, "c"))
    assert body_of(call, official=False)["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "x", "signature": ""},
        {"type": "text", "text": "b"},
    ]
    call.refused_fields = frozenset({UNSIGNED_THINKING})
    assert body_of(call, official=False)["messages"][1]["content"] == "b"


def test_a_signature_of_any_form_goes_back() -> None:
    block = Block(thinking=Thinking(text="x", signature="0b6a2c1e-7d1f"))
    call = call_of(says(USER, "a"), says(ASSISTANT, block, "b"), says(USER, "c"))
    sent = body_of(call, official=False)["messages"][1]["content"][0]
    assert sent["signature"] == "0b6a2c1e-7d1f"


def test_extra_fields_of_another_provider_are_left_out() -> None:
    part = Block(opaque=opaque({"type": "reference", "reference_ids": [1]}, OPENAI))
    call = call_of(says(USER, "a"), says(ASSISTANT, "b", part), says(USER, "c"), dialect=OPENAI)
    assert body_of(call)["messages"][1]["content"] == "b"
    assert dropped_of(call) == ["messages[].content[]"]
    asked = call_of(says(USER, "a", part), dialect=OPENAI)
    assert refusal_of(asked) == ("UNSUPPORTED", "messages[0].content[1]")
