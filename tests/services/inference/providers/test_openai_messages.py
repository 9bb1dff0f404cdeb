import base64
from typing import Any

import pytest

from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Dialect,
    Thinking,
    ToolResult,
    ToolUse,
)
from services.inference.providers.openai.fields import Server
from services.inference.providers.openai.request import build_request
from tests.services.inference.providers.caller_paths import dropped_of
from tests.services.inference.providers.openai_calls import (
    ANTHROPIC,
    ASSISTANT,
    DEVELOPER,
    NONE,
    OPENAI,
    SYSTEM,
    USER,
    body_of,
    call_of,
    medium,
    opaque,
    refusal_of,
    says,
    sent,
)

PNG = b"\x89PNG\r\n\x1a\n\xff"
IMAGE_PART: dict[str, Any] = {
    "type": "image_url",
    "image_url": {"url": "data:image/png;base64," + base64.b64encode(PNG).decode()},
}


def use(id: str = "c1", name: str = "f", input: str = "{}", **fields: Any) -> Block:
    return Block(tool_use=ToolUse(id=id, name=name, input=input, **fields))


def result(id: str, *blocks: Block | str, is_error: bool = False) -> Block:
    made = [Block(text=block) if isinstance(block, str) else block for block in blocks]
    return Block(tool_result=ToolResult(tool_use_id=id, blocks=made, is_error=is_error))


def image() -> Block:
    return medium("image", data=PNG, mime_type="image/png")


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_fields_of_messages_that_the_model_refused_are_left_out() -> None:
    messages = (
        says(USER, "a"),
        says(ASSISTANT, "b", use(), extra=opaque({"x": 1, "kept": 2})),
        says(USER, Block(tool_result=ToolResult(tool_use_id="c1"), extra=opaque({"x": 1}))),
    )
    call = call_of(*messages)
    call.refused_fields = frozenset({"messages[].x"})
    body = body_of(call, known=False)
    assert [message.get("x") for message in body["messages"]] == [None] * 3
    assert body["messages"][1]["kept"] == 2
    assert dropped_of(call) == ["messages[].x"]


def test_messages_keep_their_order_roles_and_names() -> None:
    assert sent(
        says(SYSTEM, "a"), says(USER, "b", name="bo"), says(ASSISTANT, "c"), says(USER, "d")
    ) == [
        {"role": "system", "content": "a"},
        {"role": "user", "content": "b", "name": "bo"},
        {"role": "assistant", "content": "c"},
        {"role": "user", "content": "d"},
    ]


@pytest.mark.parametrize(("newest", "role"), [(True, "developer"), (False, "system")])
def test_only_openai_itself_knows_the_role_developer(newest: bool, role: str) -> None:
    assert sent(says(DEVELOPER, "a"), says(USER, "b"), newest=newest)[0]["role"] == role


def test_texts_are_parts_for_openai_and_a_string_for_others() -> None:
    message = says(USER, "a", "b")
    assert sent(message) == [{"role": "user", "content": [text("a"), text("b")]}]
    assert sent(message, newest=False) == [{"role": "user", "content": "a\nb"}]


def test_pieces_of_what_the_model_said_run_on() -> None:
    assert sent(says(ASSISTANT, "a", "b"), says(USER, "c"))[0]["content"] == "ab"


def test_tool_calls_and_results_are_translated() -> None:
    assert sent(
        says(USER, "go"),
        says(ASSISTANT, "so", use("c1", "f", '{"a":1}'), use("c2", "g", "")),
        says(USER, result("c1", "x"), result("c2", "y", "z"), "and"),
        newest=False,
    ) == [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": "so",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
                {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
        {"role": "tool", "tool_call_id": "c2", "content": "y\nz"},
        {"role": "user", "content": "and"},
    ]


def test_malformed_arguments_go_back_as_the_model_wrote_them() -> None:
    messages = sent(says(ASSISTANT, use(input='{"a":')), says(USER, result("c1")))
    assert messages[0]["tool_calls"][0]["function"]["arguments"] == '{"a":'
    assert messages[0]["content"] is None
    assert messages[1] == {"role": "tool", "tool_call_id": "c1", "content": ""}


def test_a_call_of_a_tool_for_free_text_is_a_custom_one() -> None:
    call = sent(says(ASSISTANT, use(input="a b", freeform=True)), says(USER, result("c1")))[0]
    assert call["tool_calls"] == [
        {"id": "c1", "type": "custom", "custom": {"name": "f", "input": "a b"}}
    ]


def test_results_are_moved_before_other_content() -> None:
    messages = sent(says(ASSISTANT, use()), says(USER, "look", result("c1", "x")))
    assert [message["role"] for message in messages] == ["assistant", "tool", "user"]


def test_images_of_results_follow_in_a_user_message() -> None:
    calls = says(ASSISTANT, use("c1"), use("c2"))
    said = sent(calls, says(USER, result("c1", "x", image())), says(USER, result("c2", "y")))
    assert [message["role"] for message in said] == ["assistant", "tool", "tool", "user"]
    assert said[1]["content"] == [text("x"), text("[1 attached in the next user message]")]
    assert said[2]["content"] == "y"
    assert said[3]["content"] == [text("[Attached to the result of tool call c1]"), IMAGE_PART]


def test_images_of_results_precede_the_user_s_text() -> None:
    message = says(USER, "what is it?", result("c1", image()))
    last = sent(says(ASSISTANT, use("c1")), message)[-1]
    label = text("[Attached to the result of tool call c1]")
    assert last["content"] == [label, IMAGE_PART, text("what is it?")]


def test_the_error_mark_of_a_failed_result_is_dropped() -> None:
    call = call_of(says(ASSISTANT, use()), says(USER, result("c1", "bad", is_error=True)))
    assert body_of(call)["messages"][1]["content"] == "bad"
    assert dropped_of(call) == ["messages[].content[].is_error"]


def test_redacted_thinking_is_never_sent() -> None:
    thought = Block(thinking=Thinking(text="hm", signature="s"))
    hidden = Block(redacted_thinking="xyz")
    spoken = says(ASSISTANT, thought, hidden, "a")
    assert sent(spoken, says(ASSISTANT, thought, hidden), says(USER, "b")) == [
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "b"},
    ]


def test_a_refusal_is_a_field_for_openai_and_text_elsewhere() -> None:
    messages = (says(ASSISTANT, Block(refusal="no")), says(USER, "b"))
    assert sent(*messages)[0] == {"role": "assistant", "content": None, "refusal": "no"}
    assert sent(*messages, newest=False)[0] == {"role": "assistant", "content": "no"}


def test_images_go_as_data_urls_with_their_detail() -> None:
    block = medium("image", data=PNG, mime_type="image/png", detail="low")
    [message] = sent(says(USER, "see", block))
    part = {"type": "image_url", "image_url": {**IMAGE_PART["image_url"], "detail": "low"}}
    assert message["content"] == [text("see"), part]


def test_image_urls_go_only_to_providers_that_fetch() -> None:
    message = says(USER, medium("image", url="https://a/b.png"))
    [written] = sent(message, fetches_urls=True)
    assert written["content"] == [{"type": "image_url", "image_url": {"url": "https://a/b.png"}}]
    assert refusal_of(call_of(message)) == ("UNSUPPORTED", "messages[0].content[0]")


def test_documents_go_as_files_and_text_documents_as_text() -> None:
    [message] = sent(
        says(
            USER,
            medium("document", data=b"%PDF", mime_type="application/pdf"),
            medium("document", data=b"%PDF", mime_type="application/pdf", name="a.pdf"),
            medium("document", data="ä".encode(), mime_type="text/plain; charset=utf-8"),
            medium("document", data=b"x", mime_type="text/csv", name="t.csv"),
        )
    )
    data = "data:application/pdf;base64,JVBERg=="
    assert message["content"] == [
        {"type": "file", "file": {"filename": "document.pdf", "file_data": data}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": data}},
        text("ä"),
        text("[t.csv]\nx"),
    ]


@pytest.mark.parametrize(("mime", "form"), [("audio/x-wav", "wav"), ("audio/mpeg", "mp3")])
def test_recordings_go_in_the_two_formats_that_are_taken(mime: str, form: str) -> None:
    [message] = sent(says(USER, medium("audio", data=b"abc", mime_type=mime)))
    audio = {"data": "YWJj", "format": form}
    assert message["content"] == [{"type": "input_audio", "input_audio": audio}]


@pytest.mark.parametrize(
    "block",
    [
        medium("audio", data=b"x", mime_type="audio/ogg"),
        medium("audio", url="https://a/b"),
        medium("video", data=b"x", mime_type="video/mp4"),
        medium("document", url="https://a/b"),
        medium("document", data=b"x", mime_type="application/msword"),
        medium("document", data=b"\xff", mime_type="text/plain"),
        Block(opaque=opaque({"type": "search_result"}, ANTHROPIC)),
    ],
)
def test_unrepresentable_content_is_refused_with_its_path(block: Block) -> None:
    call = call_of(says(SYSTEM, "s"), says(USER, "a", block), dialect=ANTHROPIC)
    assert refusal_of(call) == ("UNSUPPORTED", "messages[0].content[1]")


def test_media_beyond_the_users_side_are_refused() -> None:
    call = call_of(says(SYSTEM, "a", image()), says(USER, "b"))
    assert refusal_of(call) == ("UNSUPPORTED", "messages[0].content[1]")
    call = call_of(says(ASSISTANT, image()), says(USER, "b"))
    assert refusal_of(call) == ("UNSUPPORTED", "messages[0].content[0]")


@pytest.mark.parametrize(
    ("dialect", "path"),
    [
        (OPENAI, "messages[1].content[1]"),
        (NONE, "messages[1].blocks[0].tool_result.blocks[1]"),
        (ANTHROPIC, "messages[0].content[0].content[1]"),
    ],
)
def test_a_part_of_a_result_is_named_as_the_caller_wrote_it(
    dialect: Dialect.ValueType, path: str
) -> None:
    film = medium("video", data=b"x", mime_type="video/mp4")
    call = call_of(says(SYSTEM, "s"), says(USER, result("c1", "x", film)), dialect=dialect)
    assert refusal_of(call) == ("UNSUPPORTED", path)


def test_an_empty_medium_is_refused() -> None:
    assert refusal_of(call_of(says(USER, medium("image")))) == (
        "INVALID_REQUEST",
        "messages[0].content[0]",
    )


def test_parts_and_fields_of_the_same_dialect_pass_unharmed() -> None:
    own = Block(opaque=opaque({"type": "new", "n": 1}))
    cached = Block(text="b", extra=opaque({"prompt_cache_breakpoint": {"mode": "explicit"}}))
    [message] = sent(says(USER, own, cached, extra=opaque({"weight": 1})), known=False)
    assert message == {
        "role": "user",
        "weight": 1,
        "content": [
            {"type": "new", "n": 1},
            {"type": "text", "text": "b", "prompt_cache_breakpoint": {"mode": "explicit"}},
        ],
    }


def test_extra_fields_of_calls_and_results_stay_in_place() -> None:
    signed = use()
    signed.extra.CopyFrom(opaque({"extra_content": {"google": 1}}))
    messages = sent(
        says(ASSISTANT, signed), says(USER, result("c1", "x"), extra=opaque({"z": 1})), known=False
    )
    assert messages[0]["tool_calls"][0]["extra_content"] == {"google": 1}
    assert messages[1] == {"role": "tool", "tool_call_id": "c1", "content": "x", "z": 1}


def test_the_first_call_is_marked_if_signatures_are_required() -> None:
    mark = {"google": {"thought_signature": "skip_thought_signature_validator"}}
    signed = use()
    signed.extra.CopyFrom(opaque({"extra_content": {"google": 1}}))
    for first, expected in ((use(), mark), (signed, {"google": 1})):
        call = call_of(says(USER, "a"), says(ASSISTANT, first, use()))
        call.refused_fields = frozenset({"unsigned_calls"})
        made = body_of(call, known=False, newest=False)["messages"][1]["tool_calls"]
        assert made[0]["extra_content"] == expected
        assert "extra_content" not in made[1]


def test_numbers_in_same_dialect_parts_keep_their_digits() -> None:
    block = Block()
    block.opaque.dialect = OPENAI
    block.opaque.json = b'{"type":"new","n":123456789012345678901234567890}'
    body = build_request(call_of(says(USER, block)), Server("acme", True, False, False))
    assert b"123456789012345678901234567890" in body


def test_foreign_fields_are_dropped_and_reported_once() -> None:
    cited = Block(text="a", extra=opaque({"citations": [], "none": None}, ANTHROPIC))
    cached = Block(text="b", cache_control=b'{"type":"ephemeral"}')
    call = call_of(says(USER, cited, cited, cached, cached), dialect=ANTHROPIC)
    assert body_of(call, newest=False)["messages"] == [{"role": "user", "content": "a\na\nb\nb"}]
    assert dropped_of(call) == [
        "messages[].content[].citations",
        "messages[].content[].cache_control",
    ]


@pytest.mark.parametrize(
    ("message", "path"),
    [
        (says(USER, medium("document", file_id="file-abc")), ""),
        (says(USER, Block(opaque=opaque({"type": "new", "file_id": "f"}))), ".file_id"),
        (says(USER, Block(text="a", extra=opaque({"x": {"file_id": "f"}}))), ".x.file_id"),
    ],
)
def test_a_file_kept_at_the_provider_may_not_be_named(message: Any, path: str) -> None:
    assert refusal_of(call_of(message)) == ("INVALID_REQUEST", f"messages[0].content[0]{path}")
    assert sent(message, pass_stateful=True, known=False)


def test_a_recording_of_the_model_s_own_goes_back_by_its_id() -> None:
    audio = {"id": "audio_1"}
    first, _ = sent(says(ASSISTANT, extra=opaque({"audio": audio})), says(USER, "b"))
    assert first == {"role": "assistant", "content": None, "audio": audio}


def test_thinking_goes_to_other_servers_under_both_names() -> None:
    thought = Block(thinking=Thinking(text="hm", field="reasoning"))
    first, _ = sent(says(ASSISTANT, thought, "a"), says(USER, "b"), newest=False, known=False)
    assert (first["reasoning"], first["reasoning_content"]) == ("hm", "hm")
    first, _ = sent(says(ASSISTANT, thought, "a"), says(USER, "b"))
    assert first == {"role": "assistant", "content": "a"}


def test_fields_of_messages_that_a_model_refuses_are_left_out() -> None:
    signed = use()
    signed.extra.CopyFrom(opaque({"extra_content": {"google": 1}, "kept": 1}))
    extra = opaque({"reasoning_details": [1], "annotations": [2]})
    thought = Block(thinking=Thinking(text="hm", field="reasoning"))
    call = call_of(says(USER, "a"), says(ASSISTANT, thought, signed, extra=extra))
    call.refused_fields = frozenset({"reasoning_details", "extra_content", "reasoning"})
    message = body_of(call, known=False, newest=False)["messages"][1]
    assert message["annotations"] == [2] and "reasoning_details" not in message
    assert "reasoning" not in message and message["reasoning_content"] == "hm"
    assert "extra_content" not in message["tool_calls"][0]
    assert message["tool_calls"][0]["kept"] == 1
    assert set(dropped_of(call)) == {
        "messages[].reasoning_details",
        "messages[].content[].extra_content",
        "messages[].reasoning",
    }


def test_fields_of_a_function_without_a_name_go_back_in_it() -> None:
    called = use()
    called.extra.CopyFrom(opaque({"function": {"v": 1, "name": "other"}}))
    messages = sent(says(USER, "a"), says(ASSISTANT, called), known=False)
    function = messages[1]["tool_calls"][0]["function"]
    assert function == {"v": 1, "name": called.tool_use.name, "arguments": function["arguments"]}


def test_a_final_assistant_message_asks_for_continuation() -> None:
    messages = sent(says(USER, "a"), says(ASSISTANT, "Once upon"))
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert messages[1]["content"] == "Once upon"
    assert "Continue your last message" in messages[2]["content"]


def test_after_a_call_of_a_tool_there_is_nothing_to_continue() -> None:
    assert len(sent(says(USER, "a"), says(ASSISTANT, "b", use()))) == 2


def test_who_uses_the_servers_own_way_to_continue_is_not_helped() -> None:
    call = call_of(says(USER, "a"), says(ASSISTANT, "b", extra=opaque({"prefix": True})))
    assert body_of(call, newest=False, known=False)["messages"][1] == {
        "role": "assistant",
        "content": "b",
        "prefix": True,
    }
    call = call_of(
        says(USER, "a"), says(ASSISTANT, "b"), extra=opaque({"continue_final_message": True})
    )
    assert len(body_of(call, newest=False, known=False)["messages"]) == 2


THOUGHT = Block(thinking=Thinking(text="Hm. "))
CALL = Block(tool_use=ToolUse(id="c1", name="f", input="{}"))


@pytest.mark.parametrize("dialect", [OPENAI, ANTHROPIC])
def test_thoughts_go_back_beside_what_came_of_them(dialect) -> None:
    (message,) = sent(
        says(ASSISTANT, THOUGHT, THOUGHT, CALL), dialect=dialect, newest=False, known=False
    )
    assert message["reasoning_content"] == "Hm. Hm. "
    assert message["tool_calls"][0]["id"] == "c1"


@pytest.mark.parametrize(
    ("dialect", "path"),
    [(OPENAI, "messages[].reasoning_content"), (ANTHROPIC, "messages[].content[].thinking")],
)
def test_openai_itself_gets_no_thinking_and_reports_it(dialect, path) -> None:
    call = call_of(says(ASSISTANT, THOUGHT, "Well."), says(USER, "And?"), dialect=dialect)
    assert "reasoning_content" not in body_of(call)["messages"][0]
    assert dropped_of(call) == [path]


def test_a_server_that_refuses_thoughts_gets_none() -> None:
    call = call_of(says(ASSISTANT, THOUGHT, "Well."), says(USER, "And?"))
    call.refused_fields = frozenset({"reasoning_content"})
    assert "reasoning_content" not in body_of(call, newest=False)["messages"][0]
    assert dropped_of(call) == ["messages[].reasoning_content"]


def test_thoughts_alone_are_no_message() -> None:
    assert len(sent(says(ASSISTANT, THOUGHT), says(USER, "hi"), newest=False)) == 1


def test_a_tool_reference_is_written_in_words() -> None:
    reference = opaque({"type": "tool_reference", "tool_name": "grep"}, ANTHROPIC)
    (_, answer) = sent(
        says(ASSISTANT, use()),
        says(USER, result("c1", Block(opaque=reference))),
        dialect=ANTHROPIC,
        newest=False,
    )
    assert answer["content"] == "[The tool grep can be called.]"
